//! A stretch of time in which the system clock was not set.

use serde::{Deserialize, Serialize};

use super::{CrossTimestamp, LEAST_TAI_OFFSET_S, MonoNs, OffsetNs, RealNs, TscCycles};

/// One cross-timestamp as it is kept in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// CLOCK_MONOTONIC before the other reads, ns.
    pub mono: MonoNs,
    /// CLOCK_REALTIME after it, ns.
    pub real: RealNs,
    /// The last reading of CLOCK_REALTIME, if there was another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_after: Option<RealNs>,
    /// CLOCK_MONOTONIC after the other reads, less `mono`: the bracket, ns.
    pub width_ns: u64,
    /// TAI − REALTIME, s.
    pub tai_offset_s: i64,
    /// Whether it is the first that was off the straight line of the ones before: the
    /// clock's rate has changed shortly before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bend: bool,
    /// Of the second that this is the narrowest of: bends, steps and jumps beside which
    /// no samples were kept, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bends_left_out: u64,
    /// Where it is the narrowest of its second, for TSC stamps: the greatest error, ns, of
    /// stamps that were converted live in that second, their own apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_bound_ns: Option<u64>,
    /// The same of the clock against the reference that it follows, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_bound_ns: Option<u64>,
    /// The TSC around the readings of CLOCK_REALTIME, where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tsc: Option<[TscCycles; 2]>,
}

/// Whether a count is left out of what is saved.
pub fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Sample {
    /// The sample that a cross-timestamp gives, unless it is torn.
    pub fn new(cross: &CrossTimestamp) -> Option<Self> {
        cross.mono_to_real()?;
        Some(Self {
            mono: cross.mono[0],
            real: cross.real[0],
            real_after: (cross.real[0] != cross.real[1]).then_some(cross.real[1]),
            width_ns: cross.width_ns(),
            tai_offset_s: cross.tai_offset_s()?,
            bend: false,
            bends_left_out: 0,
            live_bound_ns: None,
            reference_bound_ns: None,
            tsc: cross.tsc,
        })
    }

    /// CLOCK_MONOTONIC after the other reads.
    pub fn end(&self) -> MonoNs {
        MonoNs(self.mono.0.saturating_add(self.width_ns))
    }

    /// Whether REALTIME − MONOTONIC can have been within `bounds` during the reads, see
    /// [`CrossTimestamp::mono_to_real`].
    pub(super) fn allows(&self, bounds: Bounds) -> bool {
        let last = self.real_after.unwrap_or(self.real);
        let low = i128::from(last.0) - i128::from(self.end().0);
        let high = i128::from(self.real.0) - i128::from(self.mono.0);
        low <= i128::from(bounds.high) && high >= i128::from(bounds.low)
    }
}

/// Bounds of a constant offset, ns, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Least offset that every cross-timestamp so far allows.
    pub low: i64,
    /// Greatest offset that every cross-timestamp so far allows.
    pub high: i64,
}

impl Bounds {
    /// The offsets that both allow.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let low = self.low.max(other.low);
        let high = self.high.min(other.high);
        (low <= high).then_some(Self { low, high })
    }

    /// The offsets that either allows, and those between.
    pub fn hull(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// The offset in the middle: off by at most [`Self::half_width`].
    pub fn middle(self) -> OffsetNs {
        OffsetNs(self.low.saturating_add_unsigned(self.width() / 2))
    }

    /// From one to the other.
    pub fn width(self) -> u64 {
        self.high.abs_diff(self.low)
    }

    /// Greatest error of [`Self::middle`], ns.
    pub fn half_width(self) -> u64 {
        self.width().div_ceil(2)
    }
}

/// Why CLOCK_REALTIME and CLOCK_MONOTONIC, or TAI, parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepCause {
    /// Somebody set the system clock.
    Set,
    /// A leap second: CLOCK_REALTIME was set by a second, and TAI is a second more
    /// ahead of it or less (`second_overflow`, kernel/time/ntp.c).
    Leap,
    /// The machine was suspended, for which CLOCK_MONOTONIC stands.
    Suspend,
    /// Only the kernel's offset to TAI was set, which `tai` stamps feel.
    Tai,
    /// The reference that the clock follows was set, or is another one.
    Reference,
}

/// A stretch of time with one offset to CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Where the segment before ended for certain (absent in the first): the clock
    /// was set between that and `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<MonoNs>,
    /// From when it is certain: the end of its first cross-timestamp; in the first
    /// segment the start of that.
    pub from: MonoNs,
    /// Until when: the start of its latest cross-timestamp.
    pub until: MonoNs,
    /// REALTIME − MONOTONIC, ns.
    pub mono_to_real: Bounds,
    /// TAI − REALTIME, s.
    pub tai_offset_s: i64,
    /// How far CLOCK_REALTIME was set at the start, ns (0 in the first).
    pub step_ns: i64,
    /// Why, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StepCause>,
    /// Where the segment begins because a raw counter jumped: how far the clock went
    /// ahead of it, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_jump_ns: Option<i64>,
    /// Cross-timestamps that agree on this segment.
    pub samples: u64,
}

impl Segment {
    /// Whether the stamps' clock was set at the start: not if only a counter jumped, or
    /// the offset to TAI changed.
    pub(super) fn is_set(&self) -> bool {
        self.cause.is_some()
    }

    /// Whether the kernel had been given TAI − UTC: it is 0 until a time daemon sets it, and
    /// leap seconds are counted from there.
    pub fn has_tai_offset(&self) -> bool {
        self.tai_offset_s >= LEAST_TAI_OFFSET_S
    }

    /// CLOCK_REALTIME at the earliest when it began and at the latest when it ended.
    pub fn real(&self) -> [RealNs; 2] {
        let Bounds { low, high } = self.mono_to_real;
        let real = |mono: MonoNs, offset| RealNs(mono.0.saturating_add_signed(offset));
        [real(self.from, low), real(self.until, high)]
    }

    /// What no clock has, if it has any of that.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let Bounds { low, high } = self.mono_to_real;
        let is_time = |mono: MonoNs| {
            let real = |offset| mono.0.checked_add_signed(offset).is_some();
            i64::try_from(mono.0).is_ok() && real(low) && real(high)
        };
        if low > high {
            Some("an offset above its upper bound")
        } else if self.after.is_some_and(|after| after > self.from) || self.from > self.until {
            Some("a segment that ends before it begins")
        } else if !is_time(self.from) || !is_time(self.until) {
            Some("a time before 1970 or after 2554")
        } else if i32::try_from(self.tai_offset_s).is_err() {
            Some("an offset of TAI that no kernel holds")
        } else {
            None
        }
    }
}

#[cfg(test)]
impl Sample {
    /// Of CLOCK_MONOTONIC and CLOCK_REALTIME, 40 ns wide.
    pub(super) fn at(mono: u64, real: u64) -> Self {
        Self {
            mono: MonoNs(mono),
            real: RealNs(real),
            real_after: None,
            width_ns: 40,
            tai_offset_s: 37,
            bend: false,
            bends_left_out: 0,
            live_bound_ns: None,
            reference_bound_ns: None,
            tsc: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TaiNs;
    use super::*;

    #[test]
    fn a_sample_allows_the_offsets_between_its_readings() {
        let sample = Sample {
            real_after: Some(RealNs(1_045)),
            ..Sample::at(100, 1_030)
        };
        // CLOCK_MONOTONIC is from 100 to 140: from 1 045 − 140 to 1 030 − 100.
        for (low, high, is_allowed) in [
            (0, 904, false),
            (0, 905, true),
            (910, 920, true),
            (930, 2_000, true),
            (931, 2_000, false),
        ] {
            assert_eq!(
                sample.allows(Bounds { low, high }),
                is_allowed,
                "{low} {high}"
            );
        }
    }

    #[test]
    fn a_sample_has_both_readings_of_a_clock_only_where_they_differ() {
        let cross = |last| CrossTimestamp {
            mono: [MonoNs(100), MonoNs(140)],
            tsc: None,
            real: [RealNs(1_110), RealNs(last)],
            tai: TaiNs(1_120),
            boot: None,
            offset: None,
        };
        let sample = Sample::new(&cross(1_110)).unwrap();
        assert_eq!((sample.real, sample.real_after), (RealNs(1_110), None));
        let sample = Sample::new(&cross(1_115)).unwrap();
        assert_eq!(sample.real_after, Some(RealNs(1_115)));
        assert_eq!(
            Sample::new(&cross(5_000)),
            None,
            "the clock was set meanwhile"
        );
    }

    fn segment() -> Segment {
        Segment {
            after: Some(MonoNs(90)),
            from: MonoNs(100),
            until: MonoNs(200),
            mono_to_real: Bounds {
                low: 1_000,
                high: 1_030,
            },
            tai_offset_s: 37,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 1,
        }
    }

    #[test]
    fn a_segment_lasts_from_its_earliest_to_its_latest_time() {
        assert_eq!(segment().real(), [RealNs(1_100), RealNs(1_230)]);
    }

    #[test]
    fn a_kernel_knows_tai_from_its_first_offset_on() {
        for (tai_offset_s, is_known) in [(0, false), (9, false), (10, true), (37, true)] {
            let segment = Segment {
                tai_offset_s,
                ..segment()
            };
            assert_eq!(segment.has_tai_offset(), is_known, "{tai_offset_s}");
        }
    }

    #[test]
    fn only_what_no_clock_has_is_a_contradiction() {
        let at = |after, from, until| Segment {
            after: Some(MonoNs(after)),
            from: MonoNs(from),
            until: MonoNs(until),
            ..segment()
        };
        let bounds = |low, high| Segment {
            mono_to_real: Bounds { low, high },
            ..segment()
        };
        let tai = |tai_offset_s| Segment {
            tai_offset_s,
            ..segment()
        };
        const LAST: u64 = i64::MAX.cast_unsigned();
        for (segment, is_possible) in [
            (segment(), true),
            (at(100, 100, 100), true),
            (at(101, 100, 100), false),
            (at(90, 101, 100), false),
            (at(90, 100, LAST), true),
            (at(90, 100, LAST + 1), false),
            (at(90, LAST + 1, LAST + 1), false),
            (bounds(5, 5), true),
            (bounds(6, 5), false),
            (bounds(-100, 5), true),
            (bounds(-101, 5), false),
            (tai(i64::from(i32::MAX)), true),
            (tai(i64::from(i32::MAX) + 1), false),
        ] {
            let is_none = segment.contradiction().is_none();
            assert_eq!(is_none, is_possible, "{segment:?}");
        }
    }

    #[test]
    fn what_a_sample_has_not_takes_no_room_in_a_file() {
        let sample = Sample::at(1, 2);
        let json = serde_json::to_string(&sample).unwrap();
        assert_eq!(
            json,
            r#"{"mono":1,"real":2,"width_ns":40,"tai_offset_s":37}"#
        );
        let bend = Sample {
            bend: true,
            bends_left_out: 3,
            real_after: Some(RealNs(5)),
            live_bound_ns: Some(7),
            tsc: Some([TscCycles(8), TscCycles(9)]),
            ..sample
        };
        for sample in [sample, bend] {
            let json = serde_json::to_string(&sample).unwrap();
            assert_eq!(serde_json::from_str::<Sample>(&json).unwrap(), sample);
        }
    }

    #[test]
    fn the_middle_of_any_bounds_is_between_them() {
        for (low, high, middle) in [
            (-5, 4, -1),
            (i64::MIN, i64::MAX, -1),
            (i64::MIN, i64::MIN + 1, i64::MIN),
            (i64::MAX - 3, i64::MAX, i64::MAX - 2),
            (0, i64::MAX, i64::MAX / 2),
        ] {
            let bounds = Bounds { low, high };
            assert_eq!(bounds.middle(), OffsetNs(middle), "{bounds:?}");
            assert_eq!(bounds.half_width(), high.abs_diff(middle), "{bounds:?}");
        }
    }
}
