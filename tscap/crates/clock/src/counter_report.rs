//! What a file says of a raw counter.

use serde::{Deserialize, Serialize};

use super::{NsPerCycle, RawRate, RawStamp};

/// What the file says of a raw counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterReport {
    /// p̂, in files in units of 2^-58 ns a cycle: the average rate against the host's clock, with
    /// all that slewed that.
    pub ns_per_cycle_2_58: NsPerCycle,
    /// Greatest relative error of p̂ as an average over its baseline, parts per billion:
    /// intervals by it are off by the slews as well, of which it says nothing.
    pub rate_bound_ppb: u64,
    /// The rate against CLOCK_MONOTONIC_RAW, which nothing slews, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawRate>,
}

impl CounterReport {
    /// Intervals between raw stamps are this times their difference, the difference
    /// clock: by CLOCK_MONOTONIC_RAW, or by p̂ where that is not known.
    pub fn interval_rate(&self) -> NsPerCycle {
        self.raw
            .map_or(self.ns_per_cycle_2_58, |raw| raw.ns_per_cycle_2_58)
    }

    /// Greatest relative error of [`Self::interval_rate`], parts per billion.
    pub fn interval_bound_ppb(&self) -> u64 {
        self.raw.map_or(self.rate_bound_ppb, |raw| raw.bound_ppb)
    }
}

/// How closely the offset between a CPU's own counter (its perf event) and the
/// TSC is bracketed, ns. A chain of two legs: CLOCK_MONOTONIC is read on either
/// side of the event, and the TSC on either side of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetBracket {
    /// The first leg, which each CPU has for itself, of the narrowest run.
    pub cpu_ns: u64,
    /// The second, between two clocks that are the same on every CPU.
    pub common_ns: u64,
    /// Both together, all runs intersected. The offset is off by half of this at most.
    pub whole_ns: u64,
}

impl OffsetBracket {
    /// The greater of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.max(other.cpu_ns),
            common_ns: self.common_ns.max(other.common_ns),
            whole_ns: self.whole_ns.max(other.whole_ns),
        }
    }
}

/// Nanoseconds from one raw stamp to another, by the difference clock: `p̂·ΔN`
/// for a counter; for `ktime` and `tai`, which count nanoseconds, `ΔN` itself.
pub fn interval_ns(from: RawStamp, to: RawStamp, counter: Option<&CounterReport>) -> i64 {
    let cycles = to.0.abs_diff(from.0);
    let ns = counter.map_or(cycles, |counter| {
        counter.interval_rate().duration_ns(cycles)
    });
    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
    if to >= from { ns } else { -ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_intervals_is_that_of_their_rate() {
        let host = CounterReport {
            ns_per_cycle_2_58: NsPerCycle::ONE,
            rate_bound_ppb: 70,
            raw: None,
        };
        assert_eq!(host.interval_bound_ppb(), 70);
        let raw = RawRate {
            ns_per_cycle_2_58: NsPerCycle::ONE,
            bound_ppb: 9,
        };
        let raw = CounterReport {
            raw: Some(raw),
            ..host
        };
        assert_eq!(raw.interval_bound_ppb(), 9);
    }

    #[test]
    fn an_interval_back_in_time_is_negative() {
        let interval = |from, to| interval_ns(RawStamp(from), RawStamp(to), None);
        assert_eq!((interval(5, 2), interval(2, 5)), (-3, 3));
    }
}
