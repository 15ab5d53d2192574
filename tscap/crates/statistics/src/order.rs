//! Means and order statistics of values that are all kept.

use std::ops::AddAssign;

/// Values left out by [`trimmed_mean`] at either end, %.
const TRIMMED_PERCENT: usize = 1;

/// The arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value in the middle, or the mean of the two in the middle (type 2); `None` of
/// nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some((sorted[(sorted.len() - 1) / 2] + upper) / 2.0)
}

/// The least of the values, which are in ascending order, that at least this share of
/// them are no greater than (type 1); `None` of nothing.
pub fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The same of values in buckets, which are in ascending order: the value of the first
/// bucket up to which at least `rank` values lie.
pub fn at_rank<T, W>(buckets: impl IntoIterator<Item = (T, W)>, rank: W) -> Option<T>
where
    W: AddAssign + Default + PartialOrd,
{
    let mut sum = W::default();
    buckets.into_iter().find_map(|(value, weight)| {
        sum += weight;
        (sum >= rank).then_some(value)
    })
}

/// The mean without the outermost values, so that a few frames that something
/// interrupted between their checkpoints don't decide a round; NaN of nothing.
pub fn trimmed_mean(values: &[i64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let outermost = sorted.len() * TRIMMED_PERCENT / 100;
    let kept = &sorted[outermost..sorted.len() - outermost];
    kept.iter().map(|value| *value as f64).sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[5.0]), Some(5.0));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values = [10, 20, 30, 40];
        let of = |share| quantile(&values, share);
        assert_eq!(
            [of(0.0), of(0.25), of(0.26)],
            [Some(10), Some(10), Some(20)]
        );
        assert_eq!([of(0.5), of(0.99), of(1.0)], [Some(20), Some(40), Some(40)]);
        assert_eq!(quantile::<i64>(&[], 0.5), None);
        assert_eq!(at_rank([(1, 5u64), (2, 1)], 5), Some(1));
        assert_eq!(at_rank([(1, 5u64), (2, 1)], 6), Some(2));
        assert_eq!(at_rank([(1, 5u64), (2, 1)], 7), None);
    }

    #[test]
    fn one_interrupt_does_not_decide_a_round() {
        let mut values = vec![30; 198];
        values.extend([30_000, 0]);
        assert_eq!(trimmed_mean(&values), 30.0);
        assert_eq!(trimmed_mean(&[10, 20]), 15.0);
        assert!(trimmed_mean(&[]).is_nan());
    }
}
