//! Density of a distribution.

/// The most buckets of a density plot.
const MOST: u64 = 200;
/// Of a thousand values, so many on either side are left out.
const OUTERMOST_PER_MILLE: usize = 1;
/// Values are left out, too, that lie farther beyond the middle nine tenths than
/// so many times their width.
const FENCE: i64 = 5;

/// Shares of values in buckets of one width.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// Lower end and share of each bucket from the least to the greatest, also
    /// empty ones: 200 at most. What they lack of 1 was left out.
    pub buckets: Vec<(f64, f64)>,
    /// Width of the buckets, a whole number of the values' unit.
    pub width: f64,
}

impl Density {
    /// Of values in any order; no bucket if there is no value.
    ///
    /// Left out are the values below the 0.1 % quantile and above that of 99.9 %,
    /// and those far from the middle nine tenths: a plot that reached as far as an
    /// interrupt would be one bar. The width is
    /// 2·IQR·n^−⅓ (Freedman & Diaconis, Zeitschrift für
    /// Wahrscheinlichkeitstheorie 57 (1981) 453–476), but one unit at least.
    pub fn of(values: &[i64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let Some((low, high)) = limits(&sorted) else {
            return Self {
                buckets: Vec::new(),
                width: 1.0,
            };
        };
        let range = high.abs_diff(low);
        let width = freedman_diaconis(&sorted).max(range / MOST + 1);
        let mut counts = vec![0u64; (range / width) as usize + 1];
        for value in sorted.iter().filter(|value| (low..=high).contains(*value)) {
            counts[(value.abs_diff(low) / width) as usize] += 1;
        }
        let bucket = |(index, count): (usize, u64)| {
            let lower = low as f64 + index as f64 * width as f64;
            (lower, count as f64 / sorted.len() as f64)
        };
        Self {
            buckets: counts.into_iter().enumerate().map(bucket).collect(),
            width: width as f64,
        }
    }
}

/// The least and the greatest value that are shown.
fn limits(sorted: &[i64]) -> Option<(i64, i64)> {
    let outermost = sorted.len() * OUTERMOST_PER_MILLE / 1_000;
    let low = *sorted.get(outermost)?;
    let high = *sorted.get(sorted.len().checked_sub(1 + outermost)?)?;
    let twentieth = (sorted.len() - 1) / 20;
    let (from, to) = (sorted[twentieth], sorted[sorted.len() - 1 - twentieth]);
    let reach = to.saturating_sub(from).saturating_mul(FENCE);
    if reach == 0 {
        return Some((low, high));
    }
    let is_inside =
        |value: &&i64| (from.saturating_sub(reach)..=to.saturating_add(reach)).contains(*value);
    let low = *sorted.iter().find(is_inside)?.max(&low);
    let high = *sorted.iter().rev().find(is_inside)?.min(&high);
    Some((low, high))
}

/// 0 if half of the values are one.
fn freedman_diaconis(sorted: &[i64]) -> u64 {
    let quartile = |quarters| sorted[sorted.len() * quarters / 4];
    let range = quartile(3).abs_diff(quartile(1)) as f64;
    (2.0 * range / (sorted.len() as f64).cbrt()) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(density: &Density) -> f64 {
        density.buckets.iter().map(|(_, share)| share).sum()
    }

    #[test]
    fn nothing_has_no_bucket_and_one_value_one() {
        assert_eq!(Density::of(&[]).buckets, []);
        let one = Density::of(&[42; 100]);
        assert_eq!((one.buckets, one.width), (vec![(42.0, 1.0)], 1.0));
    }

    /// IQR 500 of 1,000 values: 2·500/10 = 100.
    #[test]
    fn the_width_is_that_of_freedman_and_diaconis() {
        let density = Density::of(&(0..1_000).collect::<Vec<_>>());
        assert_eq!(density.width.to_bits(), 100f64.to_bits());
        assert_eq!(density.buckets.len(), 10);
        assert_eq!(density.buckets[1], (101.0, 0.1));
    }

    #[test]
    fn nanoseconds_are_not_split() {
        let values: Vec<i64> = (0..1_000_000).map(|index| 30 + index % 5).collect();
        let density = Density::of(&values);
        let expected: Vec<_> = [30.0, 31.0, 32.0, 33.0, 34.0].map(|ns| (ns, 0.2)).into();
        assert_eq!((density.buckets, density.width), (expected, 1.0));
    }

    /// One frame in 2,000 met an interrupt; it is left out, and that is seen.
    #[test]
    fn the_outermost_are_left_out_and_missing_from_the_shares() {
        let mut values: Vec<i64> = (0..20_000).map(|index| 30 + index % 8).collect();
        values[..10].fill(50_000);
        let density = Density::of(&values);
        assert_eq!(density.buckets.len(), 8);
        assert!((share(&density) - 0.9995).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn buckets_hold_all_but_the_outermost(
            values in prop::collection::vec(
                prop_oneof![-50i64..500, any::<i64>()], 1..3_000)
        ) {
            let density = Density::of(&values);
            prop_assert!((1..=200).contains(&density.buckets.len()));
            prop_assert!(density.width >= 1.0 && density.width.fract() <= 0.0);
            let share = share(&density);
            prop_assert!((0.998 - 1e-9..1.0 + 1e-9).contains(&share), "{share}");
            prop_assert!(density.buckets.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}
