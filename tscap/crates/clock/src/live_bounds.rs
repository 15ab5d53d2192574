//! How far off stamps were live, by what the samples of the capture say.

use super::{History, RawStamp, Sample, TscCycles};

/// The greatest error of stamps as they were converted live, second by second.
#[derive(Clone, Debug, Default)]
pub struct LiveBounds {
    /// A counter value within a second, and the bound in that second, ns.
    seconds: Vec<(TscCycles, u64)>,
}

impl LiveBounds {
    /// By the history of the capture that converted the stamps. Nothing is known if the
    /// counter jumped: its values may come twice.
    pub fn new(history: &History) -> Self {
        let mut segments = history.segments.iter();
        let has_jumped = segments.any(|segment| segment.counter_jump_ns.is_some());
        let mut samples: Vec<&Sample> = history.samples.iter().collect();
        samples.sort_by_key(|sample| sample.mono);
        let seconds = samples.into_iter().filter_map(|sample| {
            let [before, _] = sample.tsc?;
            Some((before, sample.live_bound_ns?))
        });
        let seconds: Vec<_> = seconds.collect();
        if has_jumped || !seconds.is_sorted_by_key(|(at, _)| *at) {
            Self::default()
        } else {
            Self { seconds }
        }
    }

    /// The greatest error of a stamp, ns, that of the stamp itself apart: the greater of the
    /// seconds of the samples on either side, of which one is its own. `None` outside of
    /// the samples.
    pub fn at(&self, stamp: RawStamp) -> Option<u64> {
        let after = self.seconds.partition_point(|(at, _)| at.0 < stamp.0);
        let (_, before_ns) = self.seconds.get(after.checked_sub(1)?)?;
        let (_, after_ns) = self.seconds.get(after)?;
        Some(*before_ns.max(after_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, MonoNs, Segment, StampSource};

    fn history() -> History {
        let mut history = History::new(StampSource::Tsc);
        for (tsc, live_bound_ns) in [
            (300, Some(50)),
            (100, Some(70)),
            (200, Some(60)),
            (150, None),
        ] {
            history.samples.push(Sample {
                tsc: Some([TscCycles(tsc), TscCycles(tsc + 9)]),
                live_bound_ns,
                ..Sample::at(tsc, 0)
            });
        }
        history
    }

    #[test]
    fn a_stamp_has_the_greater_bound_of_the_seconds_around_it() {
        let bounds = LiveBounds::new(&history());
        for (stamp, bound_ns) in [
            (100, None),
            (101, Some(70)),
            (200, Some(70)),
            (201, Some(60)),
            (300, Some(60)),
            (301, None),
        ] {
            assert_eq!(bounds.at(RawStamp(stamp)), bound_ns, "{stamp}");
        }
    }

    #[test]
    fn a_counter_that_went_back_has_no_bounds() {
        let mut history = history();
        history.samples[0].tsc = Some([TscCycles(150), TscCycles(159)]);
        assert_eq!(LiveBounds::new(&history).at(RawStamp(120)), None);
    }

    #[test]
    fn a_counter_that_jumped_has_no_bounds() {
        let mut history = history();
        history.segments.push(Segment {
            after: None,
            from: MonoNs(100),
            until: MonoNs(340),
            mono_to_real: Bounds { low: 0, high: 0 },
            tai_offset_s: 37,
            step_ns: 0,
            cause: None,
            counter_jump_ns: Some(5),
            samples: 4,
        });
        assert_eq!(LiveBounds::new(&history).at(RawStamp(120)), None);
    }
}
