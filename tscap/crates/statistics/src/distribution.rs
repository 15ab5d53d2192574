//! Distributions in bounded memory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::at_rank;

/// So many values are kept as they are; more go into a histogram.
const FEW: usize = 4_096;
/// Decimal digits of the histogram: quantiles are right within 0.05 %.
const DIGITS: u8 = 3;
/// A quantile needs so many values beyond it.
pub const BEYOND: u64 = 10;

/// Signed values. Memory: 8 bytes a value up to 4,096 of them, then about 0.1 MB
/// with values up to a million, and 0.8 MB at most.
#[derive(Clone, Debug)]
pub struct Distribution {
    n: u64,
    negative: u64,
    min: i64,
    max: i64,
    /// Mean and sum of squared deviations so far (Welford 1962).
    mean: f64,
    squares: f64,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Few(Vec<i64>),
    Many(Box<Histograms>),
}

impl Values {
    fn add(&mut self, value: i64) {
        match self {
            Self::Few(values) if values.len() < FEW => values.push(value),
            _ => self.become_many().add(value),
        }
    }

    fn become_many(&mut self) -> &mut Histograms {
        if let Self::Few(values) = self {
            let mut histograms = Box::new(Histograms::new());
            values.iter().for_each(|value| histograms.add(*value));
            *self = Self::Many(histograms);
        }
        match self {
            Self::Many(histograms) => histograms,
            Self::Few(_) => unreachable!("they were put into histograms"),
        }
    }
}

#[derive(Clone, Debug)]
struct Histograms {
    /// Of the negative values' magnitudes.
    negative: Histogram<u64>,
    rest: Histogram<u64>,
}

/// What a distribution is reported as. A quantile with fewer than 10 values
/// beyond it is absent; those of more than 4,096 values are right within 0.05 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        Self {
            n: 0,
            negative: 0,
            min: i64::MAX,
            max: i64::MIN,
            mean: 0.0,
            squares: 0.0,
            values: Values::Few(Vec::new()),
        }
    }

    /// Takes one value in.
    pub fn add(&mut self, value: i64) {
        self.n += 1;
        self.negative += u64::from(value < 0);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let deviation = value as f64 - self.mean;
        self.mean += deviation / self.n as f64;
        self.squares += deviation * (value as f64 - self.mean);
        self.values.add(value);
    }

    /// Takes in the values of another one (Chan, Golub and LeVeque 1979, eq. 2.1).
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        let (own, others) = (self.n as f64, other.n as f64);
        let apart = other.mean - self.mean;
        self.n += other.n;
        self.negative += other.negative;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let share = others / self.n as f64;
        self.mean += apart * share;
        self.squares += other.squares + apart * apart * own * share;
        match &other.values {
            Values::Few(values) => values.iter().for_each(|value| self.values.add(*value)),
            Values::Many(histograms) => self.values.become_many().merge(histograms),
        }
    }

    /// Of all values; `None` if there is none.
    pub fn range(&self) -> Option<ValueRange> {
        let (n, min, max) = (self.n, self.min, self.max);
        (n > 0).then_some(ValueRange { n, min, max })
    }

    /// The values that so many per mille of all are no greater than; absent as in [`Summary`].
    pub fn quantiles<const N: usize>(mut self, per_mille: [u64; N]) -> [Option<i64>; N] {
        self.sort();
        per_mille.map(|share| self.quantile(share))
    }

    fn sort(&mut self) {
        if let Values::Few(values) = &mut self.values {
            values.sort_unstable();
        }
    }

    /// `None` if there is no value.
    pub fn summary(mut self) -> Option<Summary> {
        if self.n == 0 {
            return None;
        }
        self.sort();
        Some(Summary {
            n: self.n,
            negative: self.negative,
            min: self.min,
            p50: self.quantile(500),
            p90: self.quantile(900),
            p99: self.quantile(990),
            p99_9: self.quantile(999),
            max: self.max,
            mean: self.mean,
            sd: match self.n {
                1 => 0.0,
                n => (self.squares / (n - 1) as f64).sqrt(),
            },
        })
    }

    /// The least value that no fewer than `per_mille` of all are below or equal (type 1).
    fn quantile(&self, per_mille: u64) -> Option<i64> {
        let rank = (self.n * per_mille).div_ceil(1_000);
        if self.n - rank < BEYOND {
            return None;
        }
        Some(match &self.values {
            Values::Few(values) => values[rank as usize - 1],
            Values::Many(histograms) => {
                let value = histograms.at_rank(rank, self.negative);
                value.clamp(self.min, self.max)
            }
        })
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

    fn add(&mut self, value: i64) {
        let histogram = match value {
            ..0 => &mut self.negative,
            0.. => &mut self.rest,
        };
        let recorded = histogram.record(value.unsigned_abs());
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
        histograms.add(9);
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
    }
}
