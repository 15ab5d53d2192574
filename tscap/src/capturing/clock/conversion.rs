//! From stamps to wall-clock time, on both sides of the latest step.

use super::segments::Segments;
use super::{
    CounterConversion, MonoNs, OffsetNs, RawStamp, RealNs, Segment, StampSource, TscCycles,
};
use crate::capturing::time::NS_PER_S;

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
        /// Counter values between which the clock was set last.
        step: Option<(TscCycles, TscCycles)>,
    },
}

/// The offset on both sides of the latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetConversion {
    /// Stamps from here on belong to the current segment.
    from: RawStamp,
    /// Stamps after this one...
    after: RawStamp,
    /// ...and before this one may belong to either.
    before: RawStamp,
    earlier: OffsetNs,
    current: OffsetNs,
}

impl OffsetConversion {
    pub(super) fn new(source: StampSource, segments: &Segments) -> Self {
        let (current, earlier) = segments.around_latest_step();
        // TAI is set together with REALTIME, so its stamps order the segments only
        // when the whole seconds between them change; nothing else matters then.
        let stamp = |segment: &Segment, mono: MonoNs| match source {
            StampSource::Ktime | StampSource::Tsc => RawStamp(mono.0),
            StampSource::Tai => {
                let real = RawStamp(mono.0).to_real(segment.mono_to_real.middle());
                RawStamp(real.0.wrapping_add_signed(segment.tai_offset_s * NS_PER_S))
            }
        };
        // TAI goes back where its whole seconds become fewer: the same stamps come again.
        let [until, from] = [earlier.until, current.from];
        let [least, greatest] = match current.is_set() {
            true => [
                stamp(earlier, until).min(stamp(current, until)),
                stamp(earlier, from).max(stamp(current, from)),
            ],
            false => [stamp(current, from); 2],
        };
        Self {
            from: match current.after {
                Some(_) => stamp(current, from),
                None => RawStamp(0),
            },
            after: least,
            before: greatest,
            earlier: offset(source, earlier),
            current: offset(source, segments.current()),
        }
    }
}

impl Conversion {
    /// The wall-clock time of a stamp.
    #[inline]
    pub fn to_real(&self, stamp: RawStamp) -> RealNs {
        match self {
            Self::Offset(offset) if stamp >= offset.from => stamp.to_real(offset.current),
            Self::Offset(offset) => stamp.to_real(offset.earlier),
            Self::Counter { clock, .. } => clock.to_real(TscCycles(stamp.0)),
        }
    }

    /// Whether the stamp was taken after the last cross-timestamp before a step began and
    /// before the first one after it ended, so that either side may be its own.
    #[inline]
    pub fn is_ambiguous(&self, stamp: RawStamp) -> bool {
        match self {
            Self::Offset(offset) => {
                stamp < offset.before && stamp > offset.after && offset.earlier != offset.current
            }
            Self::Counter { step, .. } => {
                step.is_some_and(|(after, from)| {
                    let (is_later, is_earlier) = (stamp.0 > after.0, stamp.0 < from.0);
                    if after < from {
                        is_later && is_earlier
                    } else {
                        // The counter went back.
                        is_later || is_earlier
                    }
                })
            }
        }
    }
}

fn offset(source: StampSource, segment: &Segment) -> OffsetNs {
    match source {
        StampSource::Ktime | StampSource::Tsc => segment.mono_to_real.middle(),
        StampSource::Tai => OffsetNs(-segment.tai_offset_s * NS_PER_S),
    }
}
