//! A distribution in little memory of fixed size: thousands of flows have one.

use super::schema::{Bin, Figures};

/// Ranges of equal width that a power of two has.
const PARTS: u32 = 4;
/// Magnitudes up to 2^37 − 1, 137 s in nanoseconds, have a range; greater ones share the last.
const MOST_BITS: u32 = 37;
/// Ranges of a sign.
const RANGES: usize = ((MOST_BITS - PARTS) as usize + 1) << PARTS;
/// A quantile needs so many values beyond it.
const BEYOND: u64 = 10;

/// Values, of which a histogram is kept: a range is at most 1/16 of its values wide. Memory:
/// 2.2 kB, twice that for signed values.
#[derive(Clone, Debug)]
pub(super) struct Values {
    n: u64,
    min: i64,
    max: i64,
    /// Mean and sum of squared deviations so far (Welford 1962), less `base`.
    mean: f64,
    squares: f64,
    /// What the histogram is of differences to.
    base: i64,
    /// Those of negative values last. When a count is full all are halved: quantiles stay as
    /// they are.
    counts: Box<[u32]>,
}

impl Values {
    /// Of values that are not negative.
    pub fn unsigned() -> Self {
        Self::of_ranges(RANGES, 0)
    }

    /// Of values of either sign.
    pub fn signed() -> Self {
        Self::of_ranges(2 * RANGES, 0)
    }

    /// Of values near `base`: the histogram is of their differences to it.
    pub fn near(base: i64) -> Self {
        Self::of_ranges(2 * RANGES, base)
    }

    fn of_ranges(ranges: usize, base: i64) -> Self {
        Self {
            n: 0,
            min: i64::MAX,
            max: i64::MIN,
            mean: 0.0,
            squares: 0.0,
            base,
            counts: vec![0; ranges].into_boxed_slice(),
        }
    }

    /// Bytes that it takes beside itself.
    pub const fn heap_bytes(is_signed: bool) -> usize {
        let ranges = if is_signed { 2 * RANGES } else { RANGES };
        ranges * size_of::<u32>()
    }

    #[inline]
    pub fn add(&mut self, value: i64) {
        self.n += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let offset = value.saturating_sub(self.base);
        let deviation = offset as f64 - self.mean;
        self.mean += deviation / self.n as f64;
        self.squares += deviation * (offset as f64 - self.mean);
        let range = range_of(offset.unsigned_abs()) + if offset < 0 { RANGES } else { 0 };
        let count = &mut self.counts[range];
        *count += 1;
        if *count == u32::MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// How many there are.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Standard deviation, of a sample (n − 1); 0 of one value.
    pub fn sd(&self) -> f64 {
        match self.n {
            0 | 1 => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt(),
        }
    }

    /// All of them less `zero`, each of which may be off by what `bound_ns` says of the
    /// greatest magnitude; `None` of no value.
    pub fn figures(&self, zero: i64, bound_ns: impl Fn(u64) -> Option<u64>) -> Option<Figures> {
        (self.n > 0).then(|| {
            let less = |value: i64| value.saturating_sub(zero);
            let [min_ns, max_ns] = [less(self.min), less(self.max)];
            let longest = min_ns.unsigned_abs().max(max_ns.unsigned_abs());
            let quantile = |per_mille| self.quantile(per_mille).map(less);
            Figures {
                n: self.n,
                min_ns,
                mean_ns: self.mean + (self.base.saturating_sub(zero)) as f64,
                sd_ns: self.sd(),
                p50_ns: quantile(500),
                p90_ns: quantile(900),
                p99_ns: quantile(990),
                p99_9_ns: quantile(999),
                max_ns,
                bound_ns: bound_ns(longest),
            }
        })
    }

    /// The ranges that are not empty, in ascending order; the outermost end with the least and
    /// the greatest value.
    pub fn bins(&self) -> Vec<Bin> {
        let bin = |(from_ns, to_ns, n)| Bin { from_ns, to_ns, n };
        self.occupied().map(bin).collect()
    }

    /// Ranges and counts, in ascending order.
    fn occupied(&self) -> impl Iterator<Item = (i64, i64, u64)> {
        let (rest, negative) = self.counts.split_at(RANGES);
        let within = |value: i64| value.clamp(self.min, self.max);
        let offset = |magnitude: i64| self.base.saturating_add(magnitude);
        let negative = negative.iter().enumerate().rev().map(move |(range, n)| {
            let [least, greatest] = ends(range);
            (offset(-greatest), offset(-least), *n)
        });
        let rest = rest.iter().enumerate().map(move |(range, n)| {
            let [least, greatest] = ends(range);
            (offset(least), offset(greatest), *n)
        });
        let all = negative.chain(rest).filter(|(.., n)| *n > 0);
        all.map(move |(from, to, n)| (within(from), within(to), u64::from(n)))
    }

    /// The value that `per_mille` of all are below or equal, as far as ranges tell it: within
    /// one, values are taken as spread evenly.
    fn quantile(&self, per_mille: u64) -> Option<i64> {
        let rank = (self.n * per_mille).div_ceil(1_000);
        if self.n - rank < BEYOND {
            return None;
        }
        let counted: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        // Of those that are still counted, if counts were halved.
        let rank = (u128::from(rank) * u128::from(counted)).div_ceil(u128::from(self.n)) as u64;
        let mut before = 0;
        for (from, to, n) in self.occupied() {
            if before + n >= rank {
                let width = i128::from(to) - i128::from(from);
                let part = i128::from(rank - before) * width / i128::from(n);
                return Some((i128::from(from) + part) as i64);
            }
            before += n;
        }
        None
    }
}

/// The range of a magnitude.
fn range_of(magnitude: u64) -> usize {
    let magnitude = magnitude.min((1 << MOST_BITS) - 1);
    let excess = (u64::BITS - magnitude.leading_zeros()).saturating_sub(PARTS + 1);
    ((u64::from(excess) << PARTS) + (magnitude >> excess)) as usize
}

/// The least and the greatest magnitude of a range.
fn ends(range: usize) -> [i64; 2] {
    if range == RANGES - 1 {
        let [least, _] = inner_ends(range);
        return [least, i64::MAX];
    }
    inner_ends(range)
}

fn inner_ends(range: usize) -> [i64; 2] {
    let excess = (range >> PARTS).saturating_sub(1);
    let digits = (range - (excess << PARTS)) as i64;
    [digits << excess, ((digits + 1) << excess) - 1]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_lie_end_to_end() {
        let mut next = 0;
        for range in 0..RANGES {
            let [least, greatest] = ends(range);
            assert_eq!(least, next);
            assert_eq!(range_of(least.unsigned_abs()), range);
            assert_eq!(range_of(greatest.unsigned_abs()), range);
            next = greatest.wrapping_add(1);
        }
        assert_eq!(next, i64::MIN);
    }

    #[test]
    fn full_counts_are_halved_and_quantiles_stay() {
        let mut values = Values::unsigned();
        values.add(10);
        values.add(1_000_000);
        values.counts[range_of(10)] = u32::MAX - 1;
        values.counts[range_of(1_000_000)] = u32::MAX / 2;
        values.n = u64::from(u32::MAX - 1) + u64::from(u32::MAX / 2);
        values.add(10);
        assert!(values.counts.iter().all(|count| *count < u32::MAX));
        let figures = values.figures(0, |_| None).unwrap();
        assert_eq!(figures.n, values.n);
        assert!(figures.p50_ns.unwrap() <= 10 && figures.p90_ns.unwrap() > 900_000);
    }

    proptest! {
        #[test]
        fn figures_are_those_of_the_sorted_values(
            mut values in proptest::collection::vec(-1_000_000_i64..100_000_000, 1..2_000),
            base in -1_000_000_i64..1_000_000,
            zero in -1_000_i64..1_000,
        ) {
            let mut found = Values::near(base);
            values.iter().for_each(|value| found.add(*value));
            values.sort_unstable();
            let n = values.len();
            let figures = found.figures(zero, Some).unwrap();
            prop_assert_eq!(figures.n, n as u64);
            prop_assert_eq!(figures.min_ns, values[0] - zero);
            prop_assert_eq!(figures.max_ns, values[n - 1] - zero);
            let mean = values.iter().sum::<i64>() as f64 / n as f64;
            prop_assert!((figures.mean_ns + zero as f64 - mean).abs() < 1e-3);
            let squares: f64 = values.iter().map(|it| (*it as f64 - mean).powi(2)).sum();
            let sd = (squares / (n.max(2) - 1) as f64).sqrt();
            prop_assert!((figures.sd_ns - sd).abs() <= sd * 1e-9 + 1e-3);
            for (per_mille, quantile) in [(500, figures.p50_ns), (990, figures.p99_ns)] {
                let rank = (n * per_mille).div_ceil(1_000);
                prop_assert_eq!(quantile.is_some(), n - rank >= 10);
                if let Some(quantile) = quantile {
                    let exact = values[rank - 1];
                    let off = (quantile + zero - exact).abs();
                    prop_assert!(off <= (exact - base).abs() / 16 + 1, "{} {}", quantile, exact);
                }
            }
            let bins = found.bins();
            prop_assert_eq!(bins.iter().map(|bin| bin.n).sum::<u64>(), n as u64);
            prop_assert!(bins.is_sorted_by(|one, next| one.to_ns < next.from_ns));
        }
    }
}
