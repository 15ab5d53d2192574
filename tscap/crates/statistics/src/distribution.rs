//! Distributions in bounded memory.

mod values;

use serde::{Deserialize, Serialize};

use super::ranges::{Bin, Counts, ends_around};
use values::Values;

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

/// What a distribution is reported as. A quantile with fewer than 10 values
/// beyond it is absent; those of more than 4,096 values are right within 0.05 %, those of a
/// fixed number of ranges within 1/16.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values, 1 or more.
    pub n: u64,
    /// Of these, negative ones.
    pub negative: u64,
    /// Least value, exact, in the values' unit.
    pub min: i64,
    /// Median: half of the values are no greater. Absent with fewer than 20 values.
    pub p50: Option<i64>,
    /// 90 % are no greater.
    pub p90: Option<i64>,
    /// 99 % are no greater.
    pub p99: Option<i64>,
    /// 99.9 % are no greater.
    pub p99_9: Option<i64>,
    /// Greatest value, exact, in the values' unit.
    pub max: i64,
    /// Arithmetic mean, in the values' unit.
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

    /// How many values were added.
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

#[cfg(test)]
mod tests;
