//! A stretch of time in which the system clock was not set.

use serde::{Deserialize, Serialize};

use super::{CrossTimestamp, MonoNs, OffsetNs, RealNs, TscCycles};

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
    /// The TSC around the readings of CLOCK_REALTIME, where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tsc: Option<[TscCycles; 2]>,
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
            tsc: cross.tsc,
        })
    }

    /// CLOCK_MONOTONIC after the other reads.
    pub fn end(&self) -> MonoNs {
        MonoNs(self.mono.0.saturating_add(self.width_ns))
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
        OffsetNs(self.low + (self.high - self.low) / 2)
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

    /// Whether a sample is one of its cross-timestamps.
    pub(super) fn has(&self, sample: &Sample) -> bool {
        sample.mono <= self.until && sample.end() >= self.from
    }
}
