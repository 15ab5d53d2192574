//! Distributions in bounded memory.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::at_rank;
use super::ranges::{Bin, Counts, ends_around};

/// So many values are kept as they are; more go into a histogram.
const FEW: usize = 4_096;
/// Decimal digits of the histogram: quantiles are right within 0.05 %.
const DIGITS: u8 = 3;
/// Binary digits that tell bins of these values apart, behind the first one. Each bin holds
/// whole ranges of the histogram.
const BIN_DIGITS: u32 = 7;
/// Values that may be any.
const ALL: [i64; 2] = [i64::MIN, i64::MAX];
/// A quantile needs so many values beyond it.
pub const BEYOND: u64 = 10;

/// Signed values, of a growing or of a fixed number of ranges.
///
/// Memory: 8 bytes a value up to 4,096 of them, then about 0.1 MB with values up to a million,
/// and 0.8 MB at most. Of a fixed number of ranges: [`Distribution::fixed_bytes`].
#[derive(Clone, Debug)]
pub struct Distribution {
    n: u64,
    negative: u64,
    min: i64,
    max: i64,
    /// What `mean` and `squares` are of differences to.
    base: i64,
    /// Mean and sum of squared deviations so far (Welford 1962).
    mean: f64,
    squares: f64,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Few(Vec<i64>),
    Many(Box<Histograms>),
    Fixed(Counts),
}

impl Values {
    #[inline]
    fn add(&mut self, value: i64) {
        match self {
            Self::Fixed(counts) => counts.add(value),
            Self::Few(values) if values.len() < FEW => values.push(value),
            Self::Few(_) | Self::Many(_) => self.become_many(ALL).add(value, 1),
        }
    }

    /// Puts them, which lie within these ends, into histograms.
    fn become_many(&mut self, within: [i64; 2]) -> &mut Histograms {
        if !matches!(self, Self::Many(_)) {
            let mut histograms = Box::new(Histograms::new());
            self.each(within, |value, n| histograms.add(value, n));
            *self = Self::Many(histograms);
        }
        match self {
            Self::Many(histograms) => histograms,
            Self::Few(_) | Self::Fixed(_) => unreachable!("they were put into histograms"),
        }
    }

    /// Hands over values, which lie within these ends, with their numbers: one of each range of
    /// a histogram, in ascending order.
    fn each(&self, within: [i64; 2], mut then: impl FnMut(i64, u64)) {
        match self {
            Self::Few(values) => values.iter().for_each(|value| then(*value, 1)),
            Self::Many(histograms) => histograms.each(then),
            Self::Fixed(counts) => counts.occupied(within).for_each(|bin| {
                let middle = (i128::from(bin.from_ns) + i128::from(bin.to_ns)) / 2;
                then(middle as i64, bin.n);
            }),
        }
    }

    /// The same, in ascending order where they are kept as they are.
    fn sorted(&self) -> Cow<'_, Self> {
        let Self::Few(values) = self else {
            return Cow::Borrowed(self);
        };
        let mut values = values.clone();
        values.sort_unstable();
        Cow::Owned(Self::Few(values))
    }
}

#[derive(Clone, Debug)]
struct Histograms {
    /// Of the negative values' magnitudes.
    negative: Histogram<u64>,
    rest: Histogram<u64>,
}

/// What a distribution is reported as. A quantile with fewer than 10 values
/// beyond it is absent; those of more than 4,096 values are right within 0.05 %, those of a
/// fixed number of ranges within 1/16.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values.
    pub n: u64,
    /// Of these, negative ones.
    pub negative: u64,
    /// Least.
    pub min: i64,
    /// Median.
    pub p50: Option<i64>,
    /// 90 % are no greater.
    pub p90: Option<i64>,
    /// 99 % are no greater.
    pub p99: Option<i64>,
    /// 99.9 % are no greater.
    pub p99_9: Option<i64>,
    /// Greatest.
    pub max: i64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, of a sample (n − 1); 0 of one value.
    pub sd: f64,
}

impl Summary {
    /// Of values in any order; `None` if there is none.
    pub fn of(values: impl IntoIterator<Item = i64>) -> Option<Self> {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|value| distribution.add(value));
        distribution.summary()
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

/// The range of a distribution's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// Number of values, at least 1.
    pub n: u64,
    /// The least value.
    pub min: i64,
    /// The greatest value.
    pub max: i64,
}

impl Distribution {
    /// Of no values yet.
    pub fn new() -> Self {
        Self::near(0)
    }

    /// Of values near `base`, of which mean and deviation are exact also where it is great.
    pub fn near(base: i64) -> Self {
        Self::of(base, Values::Few(Vec::new()))
    }

    /// Of values that are not negative, in a fixed number of ranges.
    pub fn fixed() -> Self {
        Self::of(0, Values::Fixed(Counts::new(0, false)))
    }

    /// Of values of either sign, in a fixed number of ranges, which are narrow near `base`.
    pub fn fixed_near(base: i64) -> Self {
        Self::of(base, Values::Fixed(Counts::new(base, true)))
    }

    fn of(base: i64, values: Values) -> Self {
        Self {
            n: 0,
            negative: 0,
            min: i64::MAX,
            max: i64::MIN,
            base,
            mean: 0.0,
            squares: 0.0,
            values,
        }
    }

    /// Bytes that a fixed number of ranges takes beside the distribution itself.
    pub const fn fixed_bytes(is_signed: bool) -> usize {
        Counts::heap_bytes(is_signed)
    }

    /// Takes one value in.
    #[inline]
    pub fn add(&mut self, value: i64) {
        self.n += 1;
        self.negative += u64::from(value < 0);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let difference = value.saturating_sub(self.base) as f64;
        let deviation = difference - self.mean;
        self.mean += deviation / self.n as f64;
        self.squares += deviation * (difference - self.mean);
        self.values.add(value);
    }

    /// Takes in the values of another one (Chan, Golub and LeVeque 1979, eq. 2.1).
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        let (own, others) = (self.n as f64, other.n as f64);
        let bases_apart = other.base.saturating_sub(self.base) as f64;
        let apart = bases_apart + (other.mean - self.mean);
        let [within, of_other] = [&*self, other].map(|it| [it.min, it.max]);
        self.n += other.n;
        self.negative += other.negative;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let share = others / self.n as f64;
        self.mean += apart * share;
        self.squares += other.squares + apart * apart * own * share;
        match &other.values {
            Values::Few(values) => values.iter().for_each(|value| self.values.add(*value)),
            Values::Many(histograms) => self.values.become_many(within).merge(histograms),
            Values::Fixed(_) => {
                let histograms = self.values.become_many(within);
                other
                    .values
                    .each(of_other, |value, n| histograms.add(value, n));
            }
        }
    }

    /// Number of values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Of all values; `None` if there is none.
    pub fn range(&self) -> Option<ValueRange> {
        let (n, min, max) = (self.n, self.min, self.max);
        (n > 0).then_some(ValueRange { n, min, max })
    }

    /// Standard deviation, of a sample (n − 1); 0 of one value.
    pub fn sd(&self) -> f64 {
        match self.n {
            0 | 1 => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt(),
        }
    }

    /// The values that so many per mille of all are no greater than; absent as in [`Summary`].
    pub fn quantiles<const N: usize>(&self, per_mille: [u64; N]) -> [Option<i64>; N] {
        let sorted = self.values.sorted();
        per_mille.map(|share| self.quantile(&sorted, share))
    }

    /// `None` if there is no value.
    pub fn summary(&self) -> Option<Summary> {
        self.summary_less(0)
    }

    /// Of all values less the least one; `None` if there is no value.
    pub fn above_least(&self) -> Option<Summary> {
        let summary = self.summary_less(self.min)?;
        Some(Summary {
            negative: 0,
            ..summary
        })
    }

    fn summary_less(&self, zero: i64) -> Option<Summary> {
        let less = |value: i64| value.saturating_sub(zero);
        let [p50, p90, p99, p99_9] = self.quantiles([500, 900, 990, 999]);
        (self.n > 0).then(|| Summary {
            n: self.n,
            negative: self.negative,
            min: less(self.min),
            p50: p50.map(less),
            p90: p90.map(less),
            p99: p99.map(less),
            p99_9: p99_9.map(less),
            max: less(self.max),
            mean: self.mean + self.base.saturating_sub(zero) as f64,
            sd: self.sd(),
        })
    }

    /// How many values lie in which range, in ascending order: those ranges that are not empty,
    /// at most 1/128 of their values wide; of a fixed number of ranges these, at most 1/16 wide.
    /// The outermost end with the least and the greatest value.
    pub fn bins(&self) -> Vec<Bin> {
        let within = [self.min, self.max];
        if let Values::Fixed(counts) = &self.values {
            return counts.occupied(within).collect();
        }
        let mut bins: Vec<Bin> = Vec::new();
        let end = |end: i128| end.clamp(self.min.into(), self.max.into()) as i64;
        self.values.sorted().each(within, |value, n| {
            match bins.last_mut().filter(|last| value <= last.to_ns) {
                Some(last) => last.n += n,
                None => {
                    let [from_ns, to_ns] = ends_around::<BIN_DIGITS>(value).map(end);
                    bins.push(Bin { from_ns, to_ns, n });
                }
            }
        });
        bins
    }

    /// The least value that no fewer than `per_mille` of all are below or equal (type 1).
    fn quantile(&self, sorted: &Values, per_mille: u64) -> Option<i64> {
        let rank = (self.n * per_mille).div_ceil(1_000);
        if self.n - rank < BEYOND {
            return None;
        }
        match sorted {
            Values::Few(values) => Some(values[rank as usize - 1]),
            Values::Many(histograms) => {
                let value = histograms.at_rank(rank, self.negative);
                Some(value.clamp(self.min, self.max))
            }
            Values::Fixed(counts) => counts.at_rank(rank, self.n, [self.min, self.max]),
        }
    }
}

impl Histograms {
    fn new() -> Self {
        let empty = Histogram::new(DIGITS).expect("three digits are allowed");
        Self {
            negative: empty.clone(),
            rest: empty,
        }
    }

    fn add(&mut self, value: i64, n: u64) {
        let histogram = match value {
            ..0 => &mut self.negative,
            0.. => &mut self.rest,
        };
        let recorded = histogram.record_n(value.unsigned_abs(), n);
        recorded.expect("the histogram grows with its values");
    }

    fn merge(&mut self, other: &Self) {
        for (own, others) in [
            (&mut self.negative, &other.negative),
            (&mut self.rest, &other.rest),
        ] {
            let added = own.add(others);
            added.expect("the histogram grows with its values");
        }
    }

    /// The least magnitude of each range, with the number of values in it, in ascending order.
    fn each(&self, mut then: impl FnMut(i64, u64)) {
        let ranges = |of: &Histogram<u64>| -> Vec<(i64, u64)> {
            let all = of.iter_recorded();
            let least = |value: u64| of.lowest_equivalent(value).cast_signed();
            all.map(|it| {
                (
                    least(it.value_iterated_to()),
                    it.count_since_last_iteration(),
                )
            })
            .collect()
        };
        let negative = ranges(&self.negative).into_iter().rev();
        // The magnitude of the least integer is itself.
        let negative = negative.map(|(magnitude, n)| (magnitude.wrapping_neg(), n));
        let all = negative.chain(ranges(&self.rest));
        all.for_each(|(value, n)| then(value, n));
    }

    /// The value of a rank, from 1 for the least on.
    fn at_rank(&self, rank: u64, negative: u64) -> i64 {
        if rank > negative {
            magnitude_at(&self.rest, rank - negative)
        } else {
            // The greatest magnitude is the least value.
            -magnitude_at(&self.negative, negative - rank + 1)
        }
    }
}

fn magnitude_at(histogram: &Histogram<u64>, rank: u64) -> i64 {
    let buckets = histogram.iter_recorded();
    let buckets = buckets.map(|it| (it.value_iterated_to(), it.count_since_last_iteration()));
    let value = at_rank(buckets, rank).unwrap_or(histogram.max());
    i64::try_from(histogram.median_equivalent(value)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_nothing_there_is_no_summary() {
        assert_eq!(Summary::of([]), None);
    }

    /// A counter of 32 bits would stop at 4,294,967,295.
    #[test]
    fn more_equal_values_than_32_bits_count_are_counted() {
        let mut histograms = Histograms::new();
        let many = u64::from(u32::MAX) + 100;
        histograms.rest.record_n(5, many).unwrap();
        histograms.add(9, 1);
        assert_eq!(histograms.at_rank(many, 0), 5);
        assert_eq!(histograms.at_rank(many + 1, 0), 9);
    }

    #[test]
    fn a_quantile_needs_ten_values_beyond_it() {
        let of = |n| Summary::of(1..=n).unwrap();
        assert_eq!(of(19).p50, None);
        assert_eq!(of(20).p50, Some(10));
        assert_eq!(of(99).p90, None);
        assert_eq!(of(100).p90, Some(90));
        assert_eq!(of(999).p99, None);
        assert_eq!((of(1_000).p99, of(1_000).p99_9), (Some(990), None));
        assert!(of(10_000).p99_9.is_some());
    }

    #[test]
    fn mean_and_deviation_are_those_of_a_sample() {
        let of = Summary::of([2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
        assert!((of.mean - 5.0).abs() < 1e-12);
        assert!((of.sd - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of([3]).unwrap().sd.to_bits(), 0);
    }

    #[test]
    fn extreme_values_do_no_harm() {
        let extremes = [i64::MIN, i64::MAX, 0, -1];
        let of = Summary::of(extremes.into_iter().cycle().take(3 * FEW)).unwrap();
        assert_eq!((of.min, of.max), (i64::MIN, i64::MAX));
        assert_eq!(of.negative, 3 * FEW as u64 / 2);
    }

    #[test]
    fn bins_are_in_ascending_order() {
        let values = [-1_000_000, -3, 0, 0, 3, 1_000_000, 1_000_001];
        let mut distribution = Distribution::new();
        values.iter().for_each(|value| distribution.add(*value));
        let all = distribution.bins();
        let bin = |from_ns, to_ns, n| Bin { from_ns, to_ns, n };
        assert_eq!(all[1..4], [bin(-3, -3, 1), bin(0, 0, 2), bin(3, 3, 1)]);
        assert_eq!((all[0].from_ns, all[0].n), (-1_000_000, 1));
        let last = all[all.len() - 1];
        assert_eq!((last.to_ns, last.n), (1_000_001, 2));
        assert!(all.is_sorted_by(|one, next| one.to_ns < next.from_ns));
        // The same of as many as a histogram takes.
        for _ in 1..FEW {
            values.iter().for_each(|value| distribution.add(*value));
        }
        let times = |n| Bin {
            n: n * FEW as u64,
            ..all[0]
        };
        let expected = all.iter().map(|it| Bin {
            n: times(it.n).n,
            ..*it
        });
        assert_eq!(distribution.bins(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn extreme_values_have_a_bin() {
        let mut distribution = Distribution::new();
        for times in [1, FEW] {
            for value in [i64::MIN, i64::MAX].repeat(times) {
                distribution.add(value);
            }
            let all = distribution.bins();
            assert_eq!((all[0].from_ns, all[1].to_ns), (i64::MIN, i64::MAX));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However they were split: quantiles to the bit, mean and deviation but for rounding.
        #[test]
        fn merged_parts_are_the_whole(
            values in prop::collection::vec(-5_000i64..1 << 40, 1..2 * FEW + 500),
            parts in 1usize..5
        ) {
            let whole = Summary::of(values.iter().copied()).unwrap();
            let mut merged = Distribution::new();
            for part in values.chunks(values.len().div_ceil(parts)) {
                let mut distribution = Distribution::new();
                part.iter().for_each(|value| distribution.add(*value));
                merged.merge(&distribution);
            }
            merged.merge(&Distribution::new());
            let merged = merged.summary().unwrap();
            let scale = whole.sd + whole.mean.abs() + 1.0;
            prop_assert!((merged.mean - whole.mean).abs() <= 1e-9 * scale);
            prop_assert!((merged.sd - whole.sd).abs() <= 1e-9 * scale);
            prop_assert_eq!(Summary { mean: whole.mean, sd: whole.sd, ..merged }, whole);
        }

        /// Few values or many, negative or not: as sorting all of them says.
        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            mut values in prop::collection::vec(
                prop_oneof![-5_000i64..5_000, -(1i64 << 47)..1 << 47], 1..FEW + 500)
        ) {
            let of = Summary::of(values.iter().copied()).unwrap();
            values.sort_unstable();
            let n = values.len();
            prop_assert_eq!((of.n, of.min, of.max), (n as u64, values[0], values[n - 1]));
            prop_assert_eq!(of.negative, values.iter().filter(|value| **value < 0).count() as u64);
            for (per_mille, quantile) in
                [(500, of.p50), (900, of.p90), (990, of.p99), (999, of.p99_9)]
            {
                let rank = (n * per_mille).div_ceil(1_000);
                prop_assert_eq!(quantile.is_some(), n - rank >= 10);
                if let Some(quantile) = quantile {
                    let exact = values[rank - 1];
                    let off = quantile.abs_diff(exact);
                    prop_assert!(off <= exact.unsigned_abs() / 2_000 + 1, "{quantile} for {exact}");
                }
            }
        }

        #[test]
        fn a_fixed_number_of_ranges_tells_nearly_the_same(
            mut values in prop::collection::vec(-1_000_000_i64..100_000_000, 1..2_000),
            base in -1_000_000_i64..1_000_000,
        ) {
            let mut found = Distribution::fixed_near(base);
            values.iter().for_each(|value| found.add(*value));
            values.sort_unstable();
            let n = values.len();
            for (of, zero) in [(found.summary(), 0), (found.above_least(), values[0])] {
                let of = of.unwrap();
                prop_assert_eq!(of.n, n as u64);
                prop_assert_eq!((of.min, of.max), (values[0] - zero, values[n - 1] - zero));
                let negative = values.iter().filter(|value| **value < zero).count();
                prop_assert_eq!(of.negative, negative as u64);
                let mean = values.iter().sum::<i64>() as f64 / n as f64;
                prop_assert!((of.mean + zero as f64 - mean).abs() < 1e-3);
                let squares: f64 = values.iter().map(|it| (*it as f64 - mean).powi(2)).sum();
                let sd = (squares / (n.max(2) - 1) as f64).sqrt();
                prop_assert!((of.sd - sd).abs() <= sd * 1e-9 + 1e-3);
                for (per_mille, quantile) in [(500, of.p50), (990, of.p99)] {
                    let rank = (n * per_mille).div_ceil(1_000);
                    prop_assert_eq!(quantile.is_some(), n - rank >= 10);
                    if let Some(quantile) = quantile {
                        let exact = values[rank - 1];
                        let off = (quantile + zero - exact).abs();
                        prop_assert!(off <= (exact - base).abs() / 16 + 1, "{} {}", quantile, exact);
                    }
                }
            }
            let bins = found.bins();
            prop_assert_eq!(bins.iter().map(|bin| bin.n).sum::<u64>(), n as u64);
            prop_assert!(bins.is_sorted_by(|one, next| one.to_ns < next.from_ns));
            // Put together with others they are in ranges of theirs.
            let mut merged = Distribution::near(base / 2);
            merged.add(base);
            merged.merge(&found);
            let (merged, whole) = (merged.summary().unwrap(), Summary::of(values.iter().copied().chain([base])).unwrap());
            prop_assert_eq!((merged.n, merged.min, merged.max), (whole.n, whole.min, whole.max));
            prop_assert!((merged.mean - whole.mean).abs() < 1e-3);
            prop_assert!((merged.sd - whole.sd).abs() <= whole.sd * 1e-9 + 1e-3);
        }
    }
}
