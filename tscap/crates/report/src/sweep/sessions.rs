//! Sessions of a sweep: what was the same while the frame size changed, and from which size
//! on each program lost nothing.

use std::cmp::Reverse;
use std::fmt;

use super::tables::{name, pace, snaplen};
use tscap_base::text::numbers::{grouped, ring};
use tscap_document::words::NOTHING;
use tscap_document::{Table, columns};
use tscap_lab::loss::schema::{Point, Sweep};

/// More than this is heavy loss.
const HEAVY: f64 = 0.1;

/// What is alike in one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Empty where rates are the axis.
    pace: String,
    snaplen: u32,
    ring: u64,
}

impl Setting {
    pub fn of(point: &Point, over_rate: bool) -> Self {
        Self {
            pace: if over_rate {
                String::new()
            } else {
                pace(point)
            },
            snaplen: point.snaplen,
            ring: point.ring_bytes,
        }
    }

    /// How much of it is tuned: by the ring first, then by the snaplen.
    pub fn tuning(&self) -> (u64, Reverse<u32>) {
        (self.ring, Reverse(self.longest()))
    }

    pub fn has_ring_of(&self, other: &Self) -> bool {
        (&self.pace, self.ring) == (&other.pace, other.ring)
    }

    pub fn delivers_as_much_as(&self, other: &Self) -> bool {
        (&self.pace, self.snaplen) == (&other.pace, other.snaplen)
    }

    /// As the title of a chart.
    pub fn title(&self) -> String {
        if self.pace.is_empty() {
            self.to_string()
        } else {
            format!("{}, {self}", self.pace)
        }
    }

    /// The longest part that is kept of a frame, bytes.
    fn longest(&self) -> u32 {
        match self.snaplen {
            0 => u32::MAX,
            snaplen => snaplen,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = match self.snaplen {
            0 => "whole frames".to_owned(),
            bytes => format!("snaplen {}", snaplen(bytes)),
        };
        write!(f, "{kept}, ring of {}", ring(self.ring))
    }
}

/// All of them, in the order of the points.
pub(super) fn settings(sweep: &Sweep, over_rate: bool) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for point in &sweep.points {
        let setting = Setting::of(point, over_rate);
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings
}

/// Of the first pace the setting with the longest snaplen and the smallest ring, and the
/// one with the shortest and the largest: the paper's first session and its last. `None` if
/// these are one.
pub(super) fn extremes(sweep: &Sweep, over_rate: bool) -> Option<(Setting, Setting)> {
    let all = settings(sweep, over_rate);
    let pace = &all.first()?.pace;
    let of_pace = all.iter().filter(|setting| setting.pace == *pace);
    let least = of_pace.clone().min_by_key(|setting| setting.tuning())?;
    let most = of_pace.max_by_key(|setting| setting.tuning())?;
    (least != most).then(|| (least.clone(), most.clone()))
}

/// For each program and setting, from which size on it lost nothing; `None` where there
/// are not several sizes.
pub(crate) fn sessions(sweep: &Sweep) -> Option<Table> {
    let mut rows = Vec::new();
    for setting in settings(sweep, false) {
        let points = sweep.points.iter();
        let points: Vec<_> = points
            .filter(|point| Setting::of(point, false) == setting)
            .collect();
        let mut names: Vec<String> = Vec::new();
        for point in &points {
            let name = name(point);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for program in names {
            let points = points.iter().filter(|point| name(point) == program);
            let mut points: Vec<&Point> = points.copied().collect();
            points.sort_by_key(|point| point.size);
            let [Some(least), Some(most)] = [points.first(), points.last()] else {
                continue;
            };
            if least.size == most.size {
                continue;
            }
            let reached: Vec<&Point> = points
                .iter()
                .copied()
                .filter(|it| it.is_reached())
                .collect();
            let from = |most_lost: f64| {
                smallest(&reached, most_lost)
                    .map_or(NOTHING.to_owned(), |size| grouped(size.into()))
            };
            rows.push(vec![
                program,
                setting.pace.clone(),
                snaplen(setting.snaplen),
                ring(setting.ring),
                format!(
                    "{}–{}",
                    grouped(least.size.into()),
                    grouped(most.size.into())
                ),
                grouped((points.len() - reached.len()) as u64),
                from(HEAVY),
                from(0.0),
            ]);
        }
    }
    let head = columns(
        "program | pace | snaplen | ring | sizes | not reached | under 10 % from | lossless from",
    );
    Table::figures("Smallest frame sizes without loss, B", &head, rows)
        .words(&[0, 1])
        .named_by(4)
        .note(
            "under 10 % from, lossless from: the smallest size from which on no size lost more than \
             10 %, or a single frame; sizes at which the sender did not reach the rate asked for do \
             not count",
        )
        .if_any()
}

/// The smallest of the sizes, in order, from which on none lost more than this share.
fn smallest(points: &[&Point], most_lost: f64) -> Option<u32> {
    let good = points.iter().rev();
    let good = good.take_while(|point| point.run.loss() <= most_lost);
    good.last().map(|point| point.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_lab::loss::fixtures::sweep;

    /// Frames of 64, 256, 1024 and 1500 bytes of which so many of 1000 were lost.
    fn points(lost: [u64; 4]) -> Vec<Point> {
        let sizes = [64, 256, 1024, 1500];
        let point = |(size, lost): (u32, u64)| {
            let mut point = sweep().points[0].clone();
            point.size = size;
            (point.run.sent, point.run.lost.before, point.run.lost.ring) = (1_000, lost, 0);
            point
        };
        sizes.into_iter().zip(lost).map(point).collect()
    }

    #[test]
    fn lossless_is_every_size_from_one_on() {
        let of = |lost, most| {
            let points = points(lost);
            smallest(&points.iter().collect::<Vec<_>>(), most)
        };
        assert_eq!(of([900, 50, 0, 0], 0.0), Some(1024));
        assert_eq!(of([900, 50, 0, 0], HEAVY), Some(256));
        // One that loses later counts, however little.
        assert_eq!(of([900, 0, 1, 0], 0.0), Some(1500));
        assert_eq!(of([0, 0, 0, 1], 0.0), None);
        assert_eq!(of([0; 4], 0.0), Some(64));
    }

    #[test]
    fn a_size_that_was_not_sent_as_asked_does_not_count() {
        let mut sweep = sweep();
        sweep.points = points([900, 0, 0, 0]);
        let row = |sweep: &Sweep| sessions(sweep).unwrap().rows[0][5..].to_vec();
        assert_eq!(row(&sweep), ["0", "256", "256"]);
        let slow = &mut sweep.points[1];
        slow.rate_asked = Some(2.0 * slow.rate_sent());
        sweep
            .points
            .iter_mut()
            .for_each(|point| point.gap = Some(12));
        assert_eq!(row(&sweep), ["1", "1,024", "1,024"]);
    }

    #[test]
    fn the_least_and_the_most_tuned_are_the_ends() {
        let mut sweep = sweep();
        let of = |sweep: &Sweep| extremes(sweep, false).map(|both| [both.0, both.1]);
        let [least, most] = of(&sweep).unwrap();
        assert_eq!((least.snaplen, most.snaplen), (0, 96));
        // The ring is tuned first, as in the paper.
        sweep.points[0].ring_bytes *= 16;
        let [least, most] = of(&sweep).unwrap();
        assert_eq!((least.snaplen, most.snaplen), (0, 96));
        assert_eq!(most.ring, 16 * least.ring);
        sweep.points.truncate(1);
        assert_eq!(of(&sweep), None);
    }
}
