//! The counter's period, and exact arithmetic with it.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nanoseconds per cycle, in units of 2^-57: exact to 7·10^-18 of a nanosecond,
/// for counters from 8 MHz on: 128 ns at most.
///
/// Files have it in units of 2^-58: a number, or its digits as a text where it has more than 64
/// bits (of counters of less than 15.625 MHz).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NsPerCycle(pub u64);

/// Binary digits behind the point of [`NsPerCycle`], and of times in [`FixedPointNs`].
const FRACTION: u32 = 57;

impl Serialize for NsPerCycle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = u128::from(self.0) << 1;
        match u64::try_from(stored) {
            Ok(number) => serializer.serialize_u64(number),
            Err(_) => serializer.serialize_str(&stored.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for NsPerCycle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Stored)
    }
}

/// Reads what files have.
struct Stored;

impl Visitor<'_> for Stored {
    type Value = NsPerCycle;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a period in units of 2^-58 ns")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<NsPerCycle, E> {
        Ok(NsPerCycle(number >> 1))
    }

    fn visit_str<E: serde::de::Error>(self, digits: &str) -> Result<NsPerCycle, E> {
        let number: u128 = digits.parse().map_err(E::custom)?;
        u64::try_from(number >> 1)
            .map(NsPerCycle)
            .map_err(E::custom)
    }
}

/// A time or a span in units of 2^-57 ns: a product of cycles and [`NsPerCycle`] is
/// exact in it, and so are sums of them, for 2^64 ns (until 2554) and a counter
/// that has run for decades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FixedPointNs(pub i128);

impl FixedPointNs {
    pub fn from_ns(ns: i128) -> Self {
        Self(ns << FRACTION)
    }

    /// In nanoseconds, to the nearest.
    pub fn ns(self) -> i128 {
        (self.0 + (1 << (FRACTION - 1))) >> FRACTION
    }

    /// In nanoseconds, rounded up.
    pub fn ns_up(self) -> u64 {
        let ns = (self.0 + ((1 << FRACTION) - 1)) >> FRACTION;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    /// A short span, for weights.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / (1u64 << FRACTION) as f64
    }

    /// So many parts per billion, less than 2^33, of a span that is not negative; never
    /// less, and at most one part per billion and 2^-28 ns more.
    pub fn ppb(self, ppb: u64) -> Self {
        // Billionths as parts of 2^30: to divide 128 bits takes longer than all the rest.
        let parts = (ppb << 30) / 1_000_000_000 + 1;
        Self(((self.0 >> 30) + 1).saturating_mul(i128::from(parts)))
    }

    pub fn plus(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl NsPerCycle {
    /// A nanosecond: a clock's that counts them.
    pub const ONE: Self = Self(1 << FRACTION);

    /// `ns` in `cycles`; `None` if that is no rate that a counter can have.
    pub fn of(ns: u64, cycles: u64) -> Option<Self> {
        let rate = (u128::from(ns) << FRACTION).checked_div(u128::from(cycles))?;
        u64::try_from(rate).ok().map(Self).filter(Self::is_possible)
    }

    /// Whether a counter can have this rate: 8 MHz or more, which is all that fits.
    pub fn is_possible(&self) -> bool {
        self.0 > 0
    }

    /// How long a coarse counter shows one value, ns, rounded up; 0 of one that counts
    /// nanoseconds or less, where the rounding of times to nanoseconds covers that.
    pub(super) fn count_ns(self) -> u64 {
        if self > Self::ONE {
            self.0.div_ceil(Self::ONE.0)
        } else {
            0
        }
    }

    /// Cycles in a span of `ns`, rounded towards zero.
    pub fn cycles_in(self, ns: i64) -> i64 {
        let cycles = (i128::from(ns) << FRACTION) / i128::from(self.0);
        i64::try_from(cycles).unwrap_or(i64::MAX)
    }

    /// Duration of `cycles`, ns, rounded to the nearest: the difference clock
    /// `p̂·ΔN`.
    #[inline]
    pub fn duration_ns(self, cycles: u64) -> u64 {
        let product = u128::from(cycles) * u128::from(self.0) + (1 << (FRACTION - 1));
        u64::try_from(product >> FRACTION).unwrap_or(u64::MAX)
    }

    /// Duration of `cycles`, exactly.
    pub(super) fn span(self, cycles: u64) -> FixedPointNs {
        FixedPointNs(i128::from(cycles).saturating_mul(i128::from(self.0)))
    }

    /// How much faster than `other` the counter would be taken to tick, parts per
    /// billion: negative if this period is the shorter one.
    pub fn ppb_from(self, other: Self) -> i64 {
        let difference = i128::from(self.0) - i128::from(other.0);
        let ppb = difference * 1_000_000_000 / i128::from(other.0);
        i64::try_from(ppb).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR_S: u64 = 365 * 86_400;

    #[test]
    fn no_drift_in_a_year_at_five_gigahertz() {
        let rate = NsPerCycle::of(1, 5).unwrap();
        let off = rate.duration_ns(YEAR_S * 5_000_000_000);
        assert!(off.abs_diff(YEAR_S * 1_000_000_000) <= 1, "{off} ns");
    }

    /// However often a year is cut, its parts add up exactly.
    #[test]
    fn spans_add_up_exactly() {
        let rate = NsPerCycle::of(1_000_003, 5_000_000).unwrap();
        let (mut sum, mut cycles) = (FixedPointNs(0), 0u64);
        for part in 1..100_000u64 {
            let part = part * 15_700_001;
            sum = sum.plus(rate.span(part));
            cycles += part;
        }
        assert!(cycles > YEAR_S * 2_000_000_000);
        assert_eq!(sum, rate.span(cycles));
    }

    #[test]
    fn parts_per_billion_are_rounded_up() {
        for ns in [0, 1, 80, 1_000_000_007, 86_400_000_000_000] {
            for ppb in [0, 1, 155, 100_000, 1_000_000_000] {
                let exact = FixedPointNs(FixedPointNs::from_ns(ns).0 / 1_000_000_000 * ppb);
                let more = FixedPointNs(FixedPointNs::from_ns(ns).0 / 1_000_000_000 * (ppb + 1));
                let found = FixedPointNs::from_ns(ns).ppb(ppb as u64);
                assert!(found >= exact, "{ns} {ppb}");
                assert!(found.0 <= more.0 + 8 * (1 << 30), "{ns} {ppb}");
            }
        }
    }

    #[test]
    fn parts_of_a_nanosecond_are_rounded_to_the_nearest_or_up() {
        const ONE: i128 = 1 << FRACTION;
        for (time, nearest, up) in [
            (0, 0, 0),
            (1, 0, 1),
            (ONE / 2 - 1, 0, 1),
            (ONE / 2, 1, 1),
            (ONE, 1, 1),
            (ONE + 1, 1, 2),
            (-ONE / 2 - 1, -1, 0),
            (7 * ONE + ONE / 2, 8, 8),
        ] {
            assert_eq!(
                (FixedPointNs(time).ns(), FixedPointNs(time).ns_up()),
                (nearest, up),
                "{time}"
            );
        }
        assert_eq!(FixedPointNs(5 * ONE / 2).as_f64(), 2.5);
        let [half, less] = [NsPerCycle(1 << 56), NsPerCycle((1 << 56) - 1)];
        assert_eq!([1, 2, 3].map(|cycles| half.duration_ns(cycles)), [1, 1, 2]);
        assert_eq!([1, 2, 3].map(|cycles| less.duration_ns(cycles)), [0, 1, 1]);
    }

    #[test]
    fn cycles_are_rounded_towards_zero() {
        let rate = NsPerCycle::of(2, 1).unwrap();
        assert_eq!([-3, 3, 4].map(|ns| rate.cycles_in(ns)), [-1, 1, 2]);
    }

    #[test]
    fn a_longer_period_is_ahead() {
        let [one, more] = [2, 3].map(|ns| NsPerCycle::of(ns, 2).unwrap());
        assert_eq!(more.ppb_from(one), 500_000_000);
        assert_eq!(one.ppb_from(more), -333_333_333);
    }

    #[test]
    fn rates_no_counter_has_are_none() {
        assert_eq!(NsPerCycle::of(0, 5), None);
        assert_eq!(NsPerCycle::of(5, 0), None);
        assert_eq!(NsPerCycle::of(u64::MAX, 1), None);
        assert!(!NsPerCycle(0).is_possible() && NsPerCycle(u64::MAX).is_possible());
        // 7.8125 MHz is a period of 128 ns.
        assert_eq!(NsPerCycle::of(128, 1), None);
        assert!(NsPerCycle::of(1_000, 8).is_some());
    }

    #[test]
    fn a_coarse_counter_shows_one_value_for_some_nanoseconds() {
        for (kilohertz, ns) in [
            (10_000, 100),
            (13_000, 77),
            (16_000, 63),
            (19_200, 53),
            (24_000, 42),
            (25_000, 40),
            (54_000, 19),
            (62_500, 16),
            (100_000, 10),
            (999_999, 2),
            (1_000_000, 0),
            (2_596_130, 0),
        ] {
            let rate = NsPerCycle::of(1_000_000, kilohertz).unwrap();
            assert_eq!(rate.count_ns(), ns, "{kilohertz} kHz");
        }
    }

    /// From 10 MHz to 10 GHz. The last binary digit of files of earlier versions is left out:
    /// 4·10^-18 ns.
    #[test]
    fn files_keep_each_period() {
        for (kilohertz, is_number) in [
            (10_000, false),
            (13_000, false),
            (15_620, false),
            (15_630, true),
            (24_000, true),
            (2_596_130, true),
            (10_000_000, true),
        ] {
            let rate = NsPerCycle::of(1_000_000, kilohertz).unwrap();
            let stored = serde_json::to_value(rate).unwrap();
            assert_eq!(stored.is_u64(), is_number, "{stored}");
            assert_eq!(serde_json::from_value::<NsPerCycle>(stored).unwrap(), rate);
        }
        let read = serde_json::from_str::<NsPerCycle>;
        assert_eq!(read("288230376151711744").unwrap(), NsPerCycle::ONE);
        assert_eq!(read("288230376151711745").unwrap(), NsPerCycle::ONE);
        for broken in ["-1", "1.5", "\"x\"", "\"1000000000000000000000\""] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }

    /// What a broken file says of a counter is no reason to end.
    #[test]
    fn impossible_spans_are_the_longest_ones() {
        let longest = NsPerCycle(u64::MAX).span(u64::MAX);
        assert_eq!(longest.plus(longest), longest);
        assert_eq!(longest.ppb(1_000_000_000), longest);
        assert_eq!(NsPerCycle(u64::MAX).duration_ns(u64::MAX), u64::MAX);
    }
}
