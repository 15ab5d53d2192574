use proptest::prelude::*;

use super::values::{FEW, Histograms};
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
