//! Autocorrelation of a series, correlation of two.

/// Lags of the autocorrelation.
const LAGS: usize = 20;
/// Autocorrelation wants four times as many values as its longest lag (Box &
/// Jenkins, Time Series Analysis, section 2.1.5).
const FEWEST: usize = 4 * LAGS;
/// Fewer pairs than this say nothing of a correlation.
const FEWEST_PAIRS: usize = 30;
/// So many values on either side are beyond what a correlation heeds.
const BEYOND: usize = 10;

/// Autocorrelation at lags 1 to 20: the lagged products of deviations from the
/// mean, over the sum of their squares (Box & Jenkins, equation 2.1.13). Empty with
/// fewer than 80 values or when they never vary.
pub fn autocorrelation(series: &[i64]) -> Vec<f64> {
    let deviations = deviations(series);
    let squares = product(&deviations, &deviations);
    if series.len() < FEWEST || squares <= 0.0 {
        return Vec::new();
    }
    (1..=LAGS)
        .map(|lag| product(&deviations, &deviations[lag..]) / squares)
        .collect()
}

/// The same of several series together, each about its own mean, so that what changes from
/// one to the next is not in it; of short ones that pulls every lag down by about one over
/// their length. Empty as above, by the number of all values.
pub fn pooled_autocorrelation<'a>(series: impl Iterator<Item = &'a [i64]> + Clone) -> Vec<f64> {
    let each: Vec<_> = series
        .filter(|one| !one.is_empty())
        .map(deviations)
        .collect();
    let values: usize = each.iter().map(Vec::len).sum();
    let products = |lag: usize| {
        let products = each.iter().map(|one| match one.get(lag..) {
            Some(later) => product(one, later),
            None => 0.0,
        });
        products.sum::<f64>()
    };
    let squares = products(0);
    if values < FEWEST || squares <= 0.0 {
        return Vec::new();
    }
    (1..=LAGS).map(|lag| products(lag) / squares).collect()
}

/// Correlation of two series of the same frames; `None` with fewer than 30 pairs
/// or when one of both doesn't vary.
///
/// Orosz & Skopkó (section V.A) say that large interval errors come with large
/// costs, not what is large. Rather than a threshold this takes Pearson's
/// correlation of the whole series, which large values rule by themselves.
/// Lest one coincidence, such as a single interrupt, decide it, the ten outermost
/// values on either side count as the next one inward (the winsorised
/// correlation of Wilcox, British Journal of Mathematical and Statistical
/// Psychology 46 (1993) 339–350).
pub fn correlation(first: &[i64], second: &[i64]) -> Option<f64> {
    let pairs = first.len().min(second.len());
    if pairs < FEWEST_PAIRS {
        return None;
    }
    let first = deviations(&without_outermost(&first[..pairs]));
    let second = deviations(&without_outermost(&second[..pairs]));
    let squares = product(&first, &first) * product(&second, &second);
    (squares > 0.0).then(|| (product(&first, &second) / squares.sqrt()).clamp(-1.0, 1.0))
}

/// Exact for a series that never varies: all are 0.
fn deviations(series: &[i64]) -> Vec<f64> {
    let sum: i128 = series.iter().map(|value| i128::from(*value)).sum();
    let mean = sum as f64 / series.len() as f64;
    series.iter().map(|value| *value as f64 - mean).collect()
}

/// Sum of products, up to the end of the shorter one.
fn product(first: &[f64], second: &[f64]) -> f64 {
    first.iter().zip(second).map(|(a, b)| a * b).sum()
}

fn without_outermost(series: &[i64]) -> Vec<i64> {
    let mut sorted = series.to_vec();
    sorted.sort_unstable();
    let (low, high) = (sorted[BEYOND], sorted[sorted.len() - 1 - BEYOND]);
    series
        .iter()
        .map(|value| *value.clamp(&low, &high))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compare::statistics::noise::Noise;

    #[test]
    fn an_ar_1_series_has_the_powers_of_its_coefficient() {
        let series: Vec<i64> = Noise::new(1)
            .autocorrelated(200_000, 0.7)
            .map(|value| (1e4 * value) as i64)
            .collect();
        let found = autocorrelation(&series);
        assert_eq!(found.len(), 20);
        for (lag, found) in (1..).zip(found) {
            assert!((found - 0.7f64.powi(lag)).abs() < 0.02, "{found} at {lag}");
        }
    }

    /// By hand: the mean is 0 and all squares are 1.
    #[test]
    fn values_in_turn_are_autocorrelated_by_turns() {
        let series: Vec<i64> = (0..100).map(|index| 1 - 2 * (index % 2)).collect();
        let found = autocorrelation(&series);
        assert!((found[0] + 0.99).abs() < 1e-12);
        assert!((found[1] - 0.98).abs() < 1e-12);
    }

    /// Rounds of 40 frames, each at another level: the levels are no memory.
    #[test]
    fn pooled_rounds_have_the_memory_of_their_frames() {
        let noise: Vec<f64> = Noise::new(5).autocorrelated(40_000, 0.6).collect();
        let rounds: Vec<Vec<i64>> = noise
            .chunks(40)
            .enumerate()
            .map(|(round, chunk)| {
                let level = 1_000_000.0 * (round % 7) as f64;
                chunk
                    .iter()
                    .map(|value| (1e3 * value + level) as i64)
                    .collect()
            })
            .collect();
        let found = pooled_autocorrelation(rounds.iter().map(|round| &round[..]));
        assert_eq!(found.len(), 20);
        // Each about its own mean of 40 correlated frames: lower by about a tenth.
        assert!((found[0] - 0.53).abs() < 0.06, "{found:?}");
        assert!(found[10].abs() < 0.15, "{found:?}");
        let few = rounds[..1].iter().map(|round| &round[..]);
        assert_eq!(pooled_autocorrelation(few), Vec::<f64>::new());
    }

    #[test]
    fn what_never_varies_or_is_short_has_no_correlation() {
        // Not exact in a float: no rounding may make a deviation of it.
        let constant = [(1 << 60) + 1; 1_000];
        let series: Vec<i64> = (0..1_000).collect();
        assert_eq!(autocorrelation(&constant), Vec::<f64>::new());
        assert_eq!(autocorrelation(&series[..79]), Vec::<f64>::new());
        assert_eq!(autocorrelation(&series[..80]).len(), 20);
        assert_eq!(autocorrelation(&[]), Vec::<f64>::new());
        assert_eq!(correlation(&constant, &series), None);
        assert_eq!(correlation(&series[..29], &series), None);
        assert!((correlation(&series[..30], &series).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn large_with_large_is_seen_and_a_single_coincidence_is_not() {
        let bulk = |seed| {
            let noise: Vec<f64> = Noise::new(seed).autocorrelated(20_000, 0.0).collect();
            noise.iter().map(|value| (20.0 * value) as i64).collect()
        };
        let (mut costs, mut errors): (Vec<i64>, Vec<i64>) = (bulk(2), bulk(3));
        costs[77] = 1_000_000;
        errors[77] = 1_000_000;
        assert!(correlation(&costs, &errors).unwrap().abs() < 0.03);
        for index in (0..20_000).step_by(100) {
            costs[index] = 1_000;
            errors[index] = 1_000;
        }
        assert!(correlation(&costs, &errors).unwrap() > 0.9);
    }

    proptest! {
        #[test]
        fn correlations_are_between_minus_1_and_1(
            first in prop::collection::vec(any::<i64>(), 0..200),
            second in prop::collection::vec(-3i64..3, 0..200),
        ) {
            let ab = correlation(&first, &second);
            prop_assert_eq!(ab, correlation(&second, &first));
            prop_assert!(ab.is_none_or(|r| (-1.0..=1.0).contains(&r)));
            prop_assert!(autocorrelation(&first).iter().all(|r| r.abs() <= 1.0));
        }
    }
}
