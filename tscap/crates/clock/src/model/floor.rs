//! The least width of a reading, and how far above it one is: its point error.

use super::scale::{HISTORY_NS, Scale};
use crate::{NsPerCycle, TscCycles};

/// A minimum over the latest half to whole of a window, in bounded memory.
#[derive(Clone, Copy, Debug)]
struct SlidingMinimum {
    length_ns: u64,
    turned: TscCycles,
    older: u64,
    newer: u64,
}

impl SlidingMinimum {
    fn new(length_ns: u64, at: TscCycles, width: u64) -> Self {
        Self {
            length_ns,
            turned: at,
            older: width,
            newer: width,
        }
    }

    fn take(&mut self, at: TscCycles, width: u64, rate: NsPerCycle) {
        if rate.duration_ns(at.0.saturating_sub(self.turned.0)) > self.length_ns / 2 {
            self.turned = at;
            self.older = self.newer;
            self.newer = width;
        }
        self.newer = self.newer.min(width);
    }

    fn least(&self) -> u64 {
        self.older.min(self.newer)
    }
}

/// How the least width has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// Readings before were this much worse than they were taken for, ns.
    Fell(u64),
    /// A level shift: for a while every reading has been wider.
    Rose,
}

/// Readings in a row by which a level shift of a network's path is told.
const IN_A_ROW: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Latest {
    widths: [u64; IN_A_ROW],
    taken: usize,
}

impl Latest {
    fn take(&mut self, width: u64) {
        self.widths[self.taken % IN_A_ROW] = width;
        self.taken += 1;
    }

    /// The least of them, if all are wider than `old` by more than `shift`, and half of them
    /// or more within `shift` of it, as around a floor.
    ///
    /// Congestion does not look so. It makes widths differ by much more than E; and where
    /// some ways are free, as they are in every trace of the papers, one of 32 readings has
    /// the old width.
    fn new_floor(&self, old: u64, shift: u64) -> Option<u64> {
        let least = *self.widths.iter().min()?;
        let is_near = |width: &&u64| **width <= least + shift;
        let near = self.widths.iter().filter(is_near).count();
        (least > old + shift && 2 * near >= IN_A_ROW).then_some(least)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    history: SlidingMinimum,
    recent: SlidingMinimum,
    /// None where every reading is certain, whatever its width.
    latest: Option<Latest>,
    shift_ns: u64,
}

impl Floor {
    pub fn new(scale: Scale, at: TscCycles, width: u64) -> Self {
        Self {
            history: SlidingMinimum::new(HISTORY_NS, at, width),
            recent: SlidingMinimum::new(scale.lifetime_ns(), at, width),
            latest: (scale.slew_confirmations > 0).then_some(Latest {
                widths: [width; IN_A_ROW],
                taken: 0,
            }),
            shift_ns: scale.quality_ns(),
        }
    }

    /// Takes in the width of a reading, ns. It falls at once. It rises when all readings
    /// of half a lifetime or more have been wider by E (RADclock's upward level shift takes
    /// 4E over 2500 s); and over a network, where a lifetime is 50 minutes, as soon as 32
    /// readings in a row are wider by E and lie around a new floor. Until then the new
    /// readings have no weight, and the clock goes by its rate alone: in an hour at another
    /// level the counter's own wander of some 10 ppb makes tens of µs of that.
    pub fn take(&mut self, at: TscCycles, width: u64, rate: NsPerCycle) -> Change {
        let before = self.history.least();
        self.history.take(at, width, rate);
        self.recent.take(at, width, rate);
        let now = self.history.least();
        if let Some(latest) = &mut self.latest {
            latest.take(width);
            if let Some(floor) = latest.new_floor(now, self.shift_ns) {
                self.history = SlidingMinimum::new(HISTORY_NS, at, floor);
                return Change::Rose;
            }
        }
        if self.recent.least() > now + self.shift_ns {
            self.history = self.recent;
            self.history.length_ns = HISTORY_NS;
            return Change::Rose;
        }
        if now < before {
            Change::Fell(before - now)
        } else {
            Change::None
        }
    }

    /// The point error of a reading of this width, ns.
    pub fn point_error(&self, width: u64) -> u64 {
        width.saturating_sub(self.history.least())
    }

    /// The least width, ns.
    pub fn least(&self) -> u64 {
        self.history.least()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Random;

    const RATE: NsPerCycle = NsPerCycle::ONE;
    const S: u64 = 1_000_000_000;

    /// Takes readings a second apart of these widths, and says at which the floor rose.
    fn rises(scale: Scale, widths: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let mut floor = Floor::new(scale, TscCycles(0), 200_000);
        let widths = widths.into_iter().enumerate();
        let rose = widths.filter(|(index, width)| {
            let at = TscCycles((*index as u64 + 1) * S);
            floor.take(at, *width, RATE) == Change::Rose
        });
        rose.map(|(index, _)| index).collect()
    }

    fn around(floor: u64, random: &mut Random) -> u64 {
        floor + random.exponential(15_000.0) as u64 + random.exponential(15_000.0) as u64
    }

    #[test]
    fn a_new_floor_is_told_by_readings_in_a_row() {
        let mut random = Random(1);
        let widths: Vec<_> = (0..1_000)
            .map(|index| around(if index < 100 { 200_000 } else { 800_000 }, &mut random))
            .collect();
        assert_eq!(
            rises(Scale::NETWORK, widths.iter().copied()),
            [100 + IN_A_ROW - 1]
        );
        // Of the host's own clocks each reading is certain: those of an interrupted spell
        // are wide, and no new floor.
        assert!(Floor::new(Scale::HOST, TscCycles(0), 50).latest.is_none());
    }

    /// E is 60,000 ns: all 32 are wider by more than that, and half of them within that of
    /// the least.
    #[test]
    fn half_of_the_readings_lie_around_a_new_floor() {
        for (widths, is_new) in [
            ([(32, 260_000), (0, 0), (0, 0)], false),
            ([(32, 260_001), (0, 0), (0, 0)], true),
            ([(16, 400_000), (0, 0), (16, 500_000)], true),
            ([(15, 400_000), (0, 0), (17, 500_000)], false),
            ([(1, 400_000), (15, 460_000), (16, 500_000)], true),
            ([(1, 400_000), (15, 460_001), (16, 500_000)], false),
        ] {
            let each = |(count, width)| std::iter::repeat_n(width, count);
            let rose = rises(Scale::NETWORK, widths.into_iter().flat_map(each));
            let expected: &[usize] = if is_new { &[IN_A_ROW - 1] } else { &[] };
            assert_eq!(rose, expected, "{widths:?}");
        }
    }

    /// Of the host's clocks a lifetime is 2 s.
    #[test]
    fn it_rises_however_far_apart_the_readings_are() {
        for gap_ms in [70, 300, 700] {
            let mut floor = Floor::new(Scale::HOST, TscCycles(0), 50);
            let mut take = |ms| floor.take(TscCycles(ms * S / 1_000), 200, RATE);
            let mut times = (1..100).map(|turn| turn * gap_ms);
            let rose = times.find(|ms| take(*ms) == Change::Rose).unwrap();
            assert!((2_000..=2_000 + 2 * gap_ms).contains(&rose), "{rose}");
        }
    }

    /// Queues that are never empty: all are wider, but by as much as it comes.
    #[test]
    fn congestion_is_no_new_floor() {
        for seed in 0..20 {
            let mut random = Random(seed);
            let mut jam = || 260_000 + random.exponential(500_000.0) as u64;
            let widths: Vec<_> = (0..1_000).map(|_| jam() + jam() - 260_000).collect();
            assert!(rises(Scale::NETWORK, widths).is_empty(), "{seed}");
        }
    }

    /// One reading in fifty on the shortest way is enough to say that it is still there.
    #[test]
    fn a_floor_that_is_still_met_is_kept() {
        let mut random = Random(3);
        let widths: Vec<_> = (0..2_000)
            .map(|index| around(if index % 30 == 0 { 200_000 } else { 800_000 }, &mut random))
            .collect();
        assert!(rises(Scale::NETWORK, widths).is_empty());
    }

    /// Readings of the host, one each tenth of a second: its widths are of one level within
    /// 40 ns, over half of 2 s.
    #[test]
    fn it_falls_at_once_and_rises_when_all_of_a_while_are_wider() {
        let rate = NsPerCycle::of(S, S).unwrap();
        let mut floor = Floor::new(Scale::HOST, TscCycles(0), 50);
        let mut turn = 0;
        let mut take = |floor: &mut Floor, width| {
            turn += 1;
            floor.take(TscCycles(turn * S / 10), width, rate)
        };
        assert_eq!(take(&mut floor, 50), Change::None);
        assert_eq!(take(&mut floor, 45), Change::Fell(5));
        assert_eq!(
            [60, 45, 40].map(|width| floor.point_error(width)),
            [15, 0, 0]
        );
        // No more than the usual.
        assert!((0..60).all(|_| take(&mut floor, 85) == Change::None));
        assert_eq!(floor.least(), 45);
        let rose = (0..60).filter(|_| take(&mut floor, 86) == Change::Rose);
        assert_eq!(rose.count(), 1);
        assert_eq!(floor.least(), 86);
        // It stays where it is for a week, not for two seconds.
        assert!((0..60).all(|_| take(&mut floor, 100) == Change::None));
        assert_eq!(floor.least(), 86);
        assert_eq!(take(&mut floor, 80), Change::Fell(6));
    }
}
