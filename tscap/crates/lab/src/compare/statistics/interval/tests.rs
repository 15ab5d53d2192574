use super::super::noise::Noise;
use super::*;

const MISSES: f64 = 0.01;

fn interval(rounds: &[f64]) -> Option<[f64; 2]> {
    RoundsMean::of(rounds, MISSES, 0.0)?.interval
}

/// Of so many null series of AR(1) noise whose mean is 0 the interval misses it, or is
/// withheld.
fn missed_and_withheld(n: usize, rho: f64, runs: u64) -> [u64; 2] {
    let mut counts = [0; 2];
    for seed in 0..runs {
        let seed = seed + (((n as f64 + rho) * 1e6) as u64);
        let rounds: Vec<f64> = Noise::new(seed).autocorrelated(n, rho).collect();
        match interval(&rounds) {
            Some([low, high]) => counts[0] += u64::from(low > 0.0 || high < 0.0),
            None => counts[1] += 1,
        }
    }
    counts
}

/// 1 % of 300 runs is 3. More than 8 misses are seen in 1 of 250 series of 300 runs with a
/// true rate of 1 %.
#[test]
fn of_noise_that_lasts_for_rounds_no_more_than_1_percent_is_missed() {
    for n in [3, 5, 15, 60] {
        for rho in [0.0, 0.5, 0.9, 0.97] {
            let [missed, withheld] = missed_and_withheld(n, rho, 300);
            assert!(missed <= 8, "{missed} of 300, n = {n}, ρ = {rho}");
            // What is always withheld misses nothing.
            assert!(n == 3 || withheld <= 120, "{withheld}, n = {n}, ρ = {rho}");
        }
    }
}

/// With 60 rounds without memory it is hardly wider than that of t: 2.66/√60 = 0.34.
#[test]
fn of_many_rounds_without_memory_it_is_short() {
    let half = |seed| {
        let rounds: Vec<f64> = Noise::new(seed).autocorrelated(60, 0.0).collect();
        half_width(interval(&rounds).unwrap())
    };
    let mut halves: Vec<f64> = (0..50).map(half).collect();
    halves.sort_by(f64::total_cmp);
    assert!((0.34..0.45).contains(&halves[25]), "{}", halves[25]);
}

/// A mean that lies `reach` beyond a limit is found to do so in about 80 of 100 runs.
#[test]
fn what_can_be_found_is_found_four_times_of_five() {
    for (n, rho) in [(40, 0.0), (60, 0.0), (60, 0.3)] {
        let runs = (0..200).map(|seed| {
            let rounds: Vec<f64> = Noise::new(seed).autocorrelated(n, rho).collect();
            let of = RoundsMean::of(&rounds, MISSES, 0.0).unwrap();
            (of.interval.unwrap()[0], of.reach.unwrap())
        });
        let runs: Vec<_> = runs.collect();
        let mut reaches: Vec<f64> = runs.iter().map(|(_, reach)| *reach).collect();
        reaches.sort_by(f64::total_cmp);
        let usual = reaches[100];
        let found = runs.iter().filter(|(low, _)| low + usual > 0.0).count();
        assert!(
            (130..=190).contains(&found),
            "{found} of 200, n = {n}, ρ = {rho}"
        );
    }
}

#[test]
fn few_rounds_and_a_drift_give_none() {
    assert_eq!(interval(&[1.0, 1.1, 1.0, 1.2]), None);
    let drift: Vec<f64> = (0..60).map(f64::from).collect();
    let of = RoundsMean::of(&drift, MISSES, 0.0).unwrap();
    assert!(of.lag_1.unwrap() > MOST_LAG_1 && of.interval.is_none() && of.reach.is_none());
    assert!(RoundsMean::of(&[], MISSES, 0.0).is_none());
}

#[test]
fn a_drift_widens_it_and_a_flutter_does_not() {
    let width = |rounds: &[f64]| half_width(interval(rounds).unwrap());
    let drift: Vec<f64> = (0..24).map(f64::from).collect();
    // The same values, low and high in turn.
    let flutter: Vec<f64> = (0..12).flat_map(|i| [drift[i], drift[23 - i]]).collect();
    assert!(width(&drift) > 3.0 * width(&flutter));
}

/// By hand: deviations −1, 1, −1, 1 about 2.
#[test]
fn lag_1_is_that_of_box_and_jenkins() {
    let of = RoundsMean::of(&[1.0, 3.0, 1.0, 3.0], MISSES, 0.0).unwrap();
    assert!((of.lag_1.unwrap() + 0.75).abs() < 1e-12);
    assert_eq!(RoundsMean::of(&[0.1; 9], MISSES, 0.0).unwrap().lag_1, None);
}

/// The quantum is what is left where no round differs from another.
#[test]
fn a_series_that_never_varies_is_as_wide_as_it_is_known() {
    let [low, high] = RoundsMean::of(&[0.25; 15], MISSES, 0.01)
        .unwrap()
        .interval
        .unwrap();
    assert!((low - 0.24).abs() < 1e-12 && (high - 0.26).abs() < 1e-12);
}
