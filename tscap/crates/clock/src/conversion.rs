//! From stamps to wall-clock time, on both sides of the latest step.

use tscap_common::stamping::Line;

use super::segments::Segments;
use super::{
    Ambiguous, CounterConversion, MonoNs, NsPerCycle, OffsetNs, RawStamp, RealNs, Segment,
    StampRange, StampSource, TscCycles,
};
use tscap_time::NS_PER_S;

/// Turns stamps into wall-clock time on both sides of the latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "made once a drain; boxing it would cost every stamp an indirection"
)]
pub enum Conversion {
    /// Of a clock that the kernel keeps: add an offset.
    Offset(OffsetConversion),
    /// Of a raw counter.
    Counter {
        /// The counter's clock.
        clock: CounterConversion,
        /// Counter from which on stamps are of after the latest step.
        since: Option<TscCycles>,
        /// Those of which nobody can tell.
        ambiguous: Ambiguous,
    },
}

/// The offset on both sides of the latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetConversion {
    /// Stamps from here on belong to the current segment.
    from: RawStamp,
    /// These may belong to either.
    ambiguous: Ambiguous,
    earlier: OffsetNs,
    current: OffsetNs,
}

impl OffsetConversion {
    pub(super) fn new(source: StampSource, segments: &Segments, ambiguous: Ambiguous) -> Self {
        let (current, earlier) = segments.around_latest_step();
        Self {
            from: match current.after {
                Some(_) => stamp_at(source, current, current.from),
                None => RawStamp(0),
            },
            ambiguous,
            earlier: offset(source, earlier),
            current: offset(source, segments.current()),
        }
    }

    /// The wall-clock time of a stamp.
    #[inline]
    pub fn to_real(&self, stamp: RawStamp) -> RealNs {
        stamp.to_real(if stamp >= self.from {
            self.current
        } else {
            self.earlier
        })
    }
}

impl Conversion {
    /// The wall-clock time of a stamp.
    #[inline]
    pub fn to_real(&self, stamp: RawStamp) -> RealNs {
        match self {
            Self::Offset(offset) => offset.to_real(stamp),
            Self::Counter { clock, .. } => clock.to_real(TscCycles(stamp.0)),
        }
    }

    /// The line of the stamps from now on, for a program: through `now` for a clock that the
    /// kernel keeps, from the latest reading on for a raw counter. It is within 1 ns of
    /// [`Self::to_real`] until the next reading.
    pub fn line(&self, now: RawStamp) -> Line {
        let (from, real, rate) = match self {
            Self::Offset(offset) => (now, now.to_real(offset.current), NsPerCycle::ONE),
            Self::Counter { clock, .. } => clock.latest(),
        };
        let longest = rate.cycles_in(Line::LONGEST_NS.cast_signed());
        Line {
            from: from.0,
            real: real.0,
            // It has one binary digit less.
            rate: rate.0 / 2,
            span: longest.unsigned_abs(),
        }
    }

    /// Whether the stamp was taken after the latest step, or after the first cross-timestamp
    /// behind it.
    #[inline]
    pub fn is_since_step(&self, stamp: RawStamp) -> bool {
        match self {
            Self::Offset(offset) => stamp >= offset.from,
            Self::Counter { clock, since, .. } => {
                let at = TscCycles(stamp.0);
                since.is_none_or(|from| at >= from) && !clock.is_before_jump(at)
            }
        }
    }

    /// Whether nobody can tell of which side of an event the stamp is: it was taken after the
    /// last certain cross-timestamp before, and before the first one after it.
    #[inline]
    pub fn is_ambiguous(&self, stamp: RawStamp) -> bool {
        match self {
            Self::Offset(OffsetConversion { ambiguous, .. }) | Self::Counter { ambiguous, .. } => {
                ambiguous.contains(stamp)
            }
        }
    }

    /// A range of stamps that has all of which that is true: the others need not be asked for.
    #[inline]
    pub fn perhaps_ambiguous(&self) -> StampRange {
        match self {
            Self::Offset(OffsetConversion { ambiguous, .. }) | Self::Counter { ambiguous, .. } => {
                ambiguous.hull()
            }
        }
    }
}

/// What a clock that the kernel keeps showed at a time of a segment. TAI is set together with
/// REALTIME.
fn stamp_at(source: StampSource, segment: &Segment, mono: MonoNs) -> RawStamp {
    match source {
        StampSource::Ktime | StampSource::Tsc => RawStamp(mono.0),
        StampSource::Tai => {
            let real = RawStamp(mono.0).to_real(segment.mono_to_real.middle());
            RawStamp(real.0.wrapping_add_signed(segment.tai_offset_s * NS_PER_S))
        }
    }
}

fn offset(source: StampSource, segment: &Segment) -> OffsetNs {
    match source {
        StampSource::Ktime | StampSource::Tsc => segment.mono_to_real.middle(),
        StampSource::Tai => OffsetNs(-segment.tai_offset_s * NS_PER_S),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tracker;
    use crate::scripted::{Host, Random};

    const MS: u64 = 1_000_000;

    /// A clock of `source` that has run for a second, and its latest reading.
    fn clock(source: StampSource, hertz: u64) -> (Conversion, RawStamp) {
        let host = Host {
            hertz,
            slews: vec![(0, 31_000)],
        };
        let cross = |t| host.cross(t * MS, [20, 40, 20]);
        let mut tracker = Tracker::new(source, &cross(0)).unwrap();
        for t in (10..=1_000).step_by(10) {
            tracker.observe(&cross(t));
        }
        let now = tracker.stamp_at(&cross(1_000), cross(1_000).mono[1]);
        (tracker.convert(), now)
    }

    #[test]
    fn a_program_converts_as_user_space_does() {
        let mut random = Random(1);
        let counters = [
            19_200_000,
            63_500_000,
            999_999_999,
            2_596_130_000,
            5_700_000_000,
        ];
        let counters = counters.map(|hertz| (StampSource::Tsc, hertz));
        let others = [StampSource::Ktime, StampSource::Tai].map(|source| (source, 1_000_000_000));
        for (source, hertz) in counters.into_iter().chain(others) {
            let (conversion, now) = clock(source, hertz);
            let line = conversion.line(now);
            assert!(line.span.abs_diff(hertz) < hertz / 1_000, "{line:?}");
            for _ in 0..10_000 {
                let ahead = (random.uniform() * line.span as f64) as u64;
                let stamp = line.from + ahead;
                let ours = conversion.to_real(RawStamp(stamp)).0;
                let theirs = line.real_at(stamp).expect("fresh");
                assert!(ours.abs_diff(theirs) <= 1, "{source:?} {hertz} {ahead}");
            }
        }
    }

    #[test]
    fn a_line_ends_on_both_sides() {
        for (source, hertz) in [
            (StampSource::Tsc, 2_596_130_000),
            (StampSource::Ktime, 1_000_000_000),
        ] {
            let (conversion, now) = clock(source, hertz);
            let line = conversion.line(now);
            for edge in [line.from - line.span, line.from + line.span] {
                assert!(line.real_at(edge).is_some(), "{source:?}");
            }
            for beyond in [line.from - line.span - 1, line.from + line.span + 1, 0] {
                assert_eq!(line.real_at(beyond), None, "{source:?}");
            }
            let before = line.real_at(line.from - line.span).expect("the edge");
            let off = (line.real - before).abs_diff(Line::LONGEST_NS);
            assert!(off <= 1, "{source:?}: {off}");
        }
    }

    #[test]
    fn what_is_since_the_latest_step_is_told() {
        for source in [StampSource::Tsc, StampSource::Ktime] {
            let host = Host {
                hertz: 2_596_130_000,
                slews: vec![(0, 0)],
            };
            let cross = |t: u64, set_ns: u64| {
                let mut cross = host.cross(t * MS, [20, 40, 20]);
                cross.real = cross.real.map(|real| RealNs(real.0 + set_ns));
                cross.tai.0 += set_ns;
                cross
            };
            let mut tracker = Tracker::new(source, &cross(0, 0)).unwrap();
            for t in 1..=100 {
                tracker.observe(&cross(t, u64::from(t > 50) * 3_000 * MS));
            }
            let conversion = tracker.convert();
            let stamp = |t: u64| match source {
                StampSource::Tsc => RawStamp(host.cycles(t * MS).0),
                _ => RawStamp(host.mono(t * MS).0),
            };
            let since = [1, 50, 52, 99].map(|t| conversion.is_since_step(stamp(t)));
            assert_eq!(since, [false, false, true, true], "{source:?}");
        }
    }

    #[test]
    fn without_a_line_nothing_is_fresh() {
        assert_eq!(Line::default().real_at(1), None);
    }
}
