//! All that is known of a clock: what a fit is made of.

use super::{NsPerCycle, Sample, Segment, StampSource};

/// A clock's history, gathered from a capture or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The stamps' source.
    pub source: StampSource,
    /// p̂ of a raw counter.
    pub rate: Option<NsPerCycle>,
    /// Every segment, in order, each as it was known last.
    pub segments: Vec<Segment>,
    /// Segments that it has left out, having had too many.
    pub left_out: u64,
    /// Samples, in any order until the history is [checked](Self::checked).
    pub samples: Vec<Sample>,
}

/// What no clock can have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history of its clock is damaged: it has {0}")]
pub struct Impossible(&'static str);

impl History {
    /// Of stamps of this source; nothing is known yet.
    pub fn new(source: StampSource) -> Self {
        Self {
            source,
            rate: None,
            segments: Vec::new(),
            left_out: 0,
            samples: Vec::new(),
        }
    }

    /// Takes in what became known since the last time. The latest segment is given
    /// again when it has grown.
    ///
    /// # Errors
    /// What no clock can have been.
    pub fn take(
        &mut self,
        rate: Option<NsPerCycle>,
        segments: &[Segment],
        samples: impl IntoIterator<Item = Sample>,
    ) -> Result<(), Impossible> {
        if rate.is_some_and(|rate| !rate.is_possible()) {
            return Err(Impossible("a counter of an impossible rate"));
        }
        if let Some(what) = segments.iter().find_map(Segment::contradiction) {
            return Err(Impossible(what));
        }
        if self.source == StampSource::Tsc {
            self.rate = rate.or(self.rate);
        }
        for segment in segments {
            let at = self
                .segments
                .partition_point(|known| known.from < segment.from);
            match self.segments.get_mut(at) {
                Some(known) if known.from == segment.from => *known = *segment,
                Some(_) => return Err(Impossible("segments out of order")),
                None => self.segments.push(*segment),
            }
        }
        self.samples.extend(samples);
        Ok(())
    }

    /// The whole history, with its samples in order of CLOCK_MONOTONIC: neither segments
    /// nor samples overlap, and each sample allows the offset of its segment.
    ///
    /// # Errors
    /// What no clock can have been.
    pub fn checked(mut self) -> Result<Self, Impossible> {
        let samples = &mut self.samples;
        samples.sort_by_key(|sample| (sample.mono, sample.bend));
        samples.dedup();
        // The narrowest of a second is there again if it is a bend.
        let is_same = |first: &Sample, second: &Sample| {
            (first.mono, first.real, first.width_ns) == (second.mono, second.real, second.width_ns)
        };
        let is_before =
            |first: &Sample, second: &Sample| first.end() <= second.mono || is_same(first, second);
        if !samples.is_sorted_by(is_before) {
            return Err(Impossible("readings that overlap"));
        }
        let segments = &self.segments;
        if !segments.is_sorted_by(|first, second| first.until <= second.from) {
            return Err(Impossible("segments that overlap"));
        }
        let contradicts = |segment: &Segment| {
            let mut of = samples_of(segment, samples).iter();
            of.any(|sample| !sample.allows(segment.mono_to_real))
        };
        if segments.iter().any(contradicts) {
            Err(Impossible("an offset that its own readings exclude"))
        } else {
            Ok(self)
        }
    }
}

/// The cross-timestamps of a segment among samples in order, see [`History::checked`].
pub(super) fn samples_of<'a>(segment: &Segment, samples: &'a [Sample]) -> &'a [Sample] {
    let after = samples.partition_point(|sample| sample.mono <= segment.until);
    let before = samples[..after].partition_point(|sample| sample.end() < segment.from);
    &samples[before..after]
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::time::ClockId;

    use crate::cross::now;
    use crate::{BaseClock, Bounds, FileClock, Fit, MonoNs, RawStamp, TimeBase, TscCycles};

    const OFFSET: i64 = 1_700_000_000_000_000_000;

    fn segment(from: u64, until: u64) -> Segment {
        Segment {
            after: None,
            from: MonoNs(from),
            until: MonoNs(until),
            mono_to_real: Bounds {
                low: OFFSET - 4,
                high: OFFSET + 4,
            },
            tai_offset_s: 37,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 1,
        }
    }

    fn sample(mono: u64) -> Sample {
        Sample::at(mono, (mono + 20).wrapping_add_signed(OFFSET))
    }

    fn checked(segments: &[Segment], samples: &[Sample]) -> Result<History, String> {
        let mut history = History::new(StampSource::Ktime);
        let samples = samples.iter().copied();
        let taken = history.take(None, segments, samples);
        let checked = taken.and_then(|()| history.checked());
        checked.map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refuses(segments: &[Segment], samples: &[Sample], what: &str) {
        let error = checked(segments, samples).expect_err(what);
        let expected = format!("the history of its clock is damaged: it has {what}");
        assert_eq!(error, expected);
    }

    #[test]
    fn samples_are_put_in_order() {
        let bend = Sample {
            bend: true,
            ..sample(300)
        };
        let segments = [segment(100, 300), segment(500, 700)];
        let samples = [sample(500), bend, sample(100), sample(300), sample(100)];
        let history = checked(&segments, &samples).unwrap();
        let expected = [sample(100), sample(300), bend, sample(500)];
        assert_eq!(history.samples, expected);
        // A segment that has grown replaces what was known of it.
        let grown = segment(500, 900);
        let mut history = history;
        history.take(None, &[segments[0], grown], []).unwrap();
        assert_eq!(history.segments, [segments[0], grown]);
    }

    #[test]
    fn only_a_raw_counter_has_a_rate() {
        let rate = NsPerCycle::of(1, 3);
        for (source, expected) in [(StampSource::Ktime, None), (StampSource::Tsc, rate)] {
            let mut history = History::new(source);
            history.take(rate, &[], []).unwrap();
            assert_eq!(history.rate, expected);
            history.take(None, &[], []).unwrap();
            assert_eq!(history.rate, expected, "what was known stays");
        }
    }

    #[test]
    fn a_segment_has_the_readings_that_touch_it() {
        let samples = [60, 159, 160, 200, 300, 301].map(sample);
        assert_eq!(samples_of(&segment(200, 300), &samples), &samples[2..5]);
    }

    /// As in a file of 64 MB that is made to take long.
    #[test]
    fn the_work_grows_no_faster_than_the_history() {
        const S: u64 = 1_000_000_000;
        let mut history = History::new(StampSource::Tsc);
        for at in (1..=100_000).map(|second| second * S) {
            let mut segment = segment(at, at + S / 2);
            segment.after = Some(MonoNs(at - S / 4));
            segment.tai_offset_s = 37 + i64::from(at % 2 == 0);
            let mut sample = sample(at);
            sample.tsc = Some([at, at + 40].map(TscCycles));
            let rate = NsPerCycle::of(1, 1);
            history.take(rate, &[segment], [sample]).unwrap();
        }
        let thread = || now(ClockId::CLOCK_THREAD_CPUTIME_ID);
        let start = thread();
        let history = history.checked().unwrap();
        let clock = FileClock {
            base: TimeBase::Tai,
            ..FileClock::default()
        };
        BaseClock::new(&history, clock, true).unwrap();
        let fit = Fit::new(&history);
        let stamps = (1..=100_000).map(|second| RawStamp(second * S + S / 4));
        let allowed = stamps.filter(|stamp| fit.allowed(*stamp).is_some());
        assert!(allowed.count() > 90_000);
        // Less than a second; where each segment looks at each sample, minutes.
        let took_ns = thread() - start;
        assert!(took_ns < 20 * S, "{took_ns}");
    }

    #[test]
    fn what_no_clock_can_have_been_is_refused() {
        let good = segment(100, 300);
        let with = |change: fn(&mut Segment)| {
            let mut segment = good;
            change(&mut segment);
            [segment]
        };
        let zero = with(|segment| segment.mono_to_real = Bounds { low: 0, high: 0 });
        let excluded = "an offset that its own readings exclude";
        refuses(&zero, &[sample(200)], excluded);
        // Nobody read the clocks meanwhile.
        assert!(checked(&zero, &[sample(400)]).is_ok());
        for apart in [-24, 24, i64::from(u32::MAX)] {
            let mut segments = [good];
            let offset = OFFSET + apart;
            segments[0].mono_to_real = Bounds {
                low: offset,
                high: offset,
            };
            if apart.abs() > 20 {
                refuses(&segments, &[sample(200)], excluded)
            } else {
                assert!(checked(&segments, &[sample(200)]).is_ok())
            }
        }
        let backwards = "a segment that ends before it begins";
        refuses(&with(|segment| segment.until = MonoNs(99)), &[], backwards);
        let after = with(|segment| segment.after = Some(MonoNs(101)));
        refuses(&after, &[], backwards);
        let outside = "a time before 1970 or after 2554";
        let early = with(|segment| segment.mono_to_real.low = -101);
        refuses(&early, &[], outside);
        let all = with(|segment| {
            segment.mono_to_real = Bounds {
                low: i64::MIN,
                high: i64::MAX,
            };
        });
        refuses(&all, &[], outside);
        refuses(
            &with(|segment| segment.until = MonoNs(u64::MAX)),
            &[],
            outside,
        );
        let tai = with(|segment| segment.tai_offset_s = 1 << 31);
        refuses(&tai, &[], "an offset of TAI that no kernel holds");
        let low = with(|segment| segment.mono_to_real.low = OFFSET + 5);
        refuses(&low, &[], "an offset above its upper bound");
        let touching = [segment(100, 300), segment(300, 500)];
        assert!(checked(&touching, &[]).is_ok());
        let apart = [segment(100, 300), segment(299, 500)];
        refuses(&apart, &[], "segments that overlap");
        let swapped = [segment(100, 300), segment(400, 500), segment(310, 320)];
        refuses(&swapped, &[], "segments out of order");
        let samples = [sample(200), sample(239)];
        refuses(&[good], &samples, "readings that overlap");
    }
}
