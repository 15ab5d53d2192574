use proptest::prelude::*;

use super::*;
use crate::compare::statistics::noise::Noise;

fn of(costs: &[f64], ktime: &[f64]) -> Ratio {
    ratio(costs, ktime, Allowance::NONE)
}

/// Costs of two stamps, round by round.
struct Machine {
    /// Autocorrelation of all noise.
    phi: f64,
    /// Standard deviation of the drift that both see, of the cost's log.
    drift: f64,
    /// Standard deviation of the noise that each has of its own, of the cost's log.
    own: f64,
    /// Probability of a spike in a round.
    spike: f64,
}

impl Machine {
    fn rounds(&self, noise: &mut Noise, n: usize, costs: [f64; 2]) -> [Vec<f64>; 2] {
        let drift: Vec<f64> = noise.autocorrelated(n, self.phi).collect();
        costs.map(|cost| {
            let own: Vec<f64> = noise.autocorrelated(n, self.phi).collect();
            let round = |(drift, own)| {
                let slowed: f64 = self.drift * drift + self.own * own;
                cost * slowed.exp() * (1.0 + noise.spike(self.spike))
            };
            drift.iter().zip(own).map(round).collect()
        })
    }
}

fn null_verdicts(own: impl Fn(&mut Noise) -> f64, phi: impl Fn(&mut Noise) -> f64) -> Vec<Ratio> {
    (0..1_000)
        .map(|seed| {
            let mut noise = Noise::new(seed);
            let machine = Machine {
                phi: phi(&mut noise),
                drift: 0.1,
                own: own(&mut noise),
                spike: 0.05,
            };
            let n = [5, 10, 20][seed as usize % 3];
            let [costs, ktime] = machine.rounds(&mut noise, n, [50.0, 50.0]);
            of(&costs, &ktime)
        })
        .collect()
}

fn is_false(verdict: &&Ratio) -> bool {
    matches!(verdict.outcome, Outcome::Cheaper | Outcome::Dearer)
}

#[test]
fn a_thousand_null_series_give_at_most_2_percent_false_verdicts() {
    let verdicts = null_verdicts(|n| 0.01 + 0.04 * n.uniform(), |n| 0.3 + 0.5 * n.uniform());
    let wrong = verdicts.iter().filter(is_false).count();
    assert!(wrong <= 20, "{wrong} of 1,000");
}

/// So noisy that the margin is no help: the interval alone must hold.
#[test]
fn the_interval_holds_without_help_from_the_margin() {
    let verdicts = null_verdicts(|_| 0.2, |n| 0.3 + 0.3 * n.uniform());
    let wrong = verdicts.iter().filter(is_false).count();
    assert!(wrong <= 20, "{wrong} of 1,000");
}

/// 2 % of noise in the ratio, 60 rounds.
#[test]
fn five_nanoseconds_on_fifty_are_found() {
    let machine = Machine {
        phi: 0.3,
        drift: 0.1,
        own: 0.02 / 2f64.sqrt(),
        spike: 0.0,
    };
    for (costs, expected) in [
        ([55.0, 50.0], Outcome::Dearer),
        ([50.0, 55.0], Outcome::Cheaper),
    ] {
        let outcomes = (0..100).map(|seed| {
            let [costs, ktime] = machine.rounds(&mut Noise::new(seed), 60, costs);
            of(&costs, &ktime).outcome
        });
        let (found, others): (Vec<_>, Vec<_>) = outcomes.partition(|found| *found == expected);
        assert!(found.len() >= 95, "{} of 100", found.len());
        assert!(
            others.iter().all(|other| *other == Outcome::Undecided),
            "{others:?}"
        );
    }
}

#[test]
fn what_slows_both_drops_out() {
    let ktime: Vec<f64> = (0..15).map(|round| 30.0 + 2.0 * f64::from(round)).collect();
    let costs: Vec<f64> = ktime.iter().map(|cost| cost * 1.5).collect();
    let verdict = of(&costs, &ktime);
    assert_eq!(verdict.outcome, Outcome::Dearer);
    assert!((verdict.ratio.unwrap() - 1.5).abs() < 1e-9);
    let [low, high] = verdict.interval.unwrap();
    assert!((low - 1.5).abs() < 1e-9 && (high - 1.5).abs() < 1e-9);
}

#[test]
fn the_margin_is_3_percent_or_a_nanosecond() {
    let same = of(&[50.0; 15], &[50.0; 15]);
    assert!((same.margin - 0.03).abs() < 1e-12);
    assert_eq!(same.outcome, Outcome::WithinMargin);
    let short = of(&[10.9; 15], &[10.0; 15]);
    assert!((short.margin - 0.1).abs() < 1e-9);
    assert_eq!(short.outcome, Outcome::WithinMargin);
    assert_eq!(of(&[11.1; 15], &[10.0; 15]).outcome, Outcome::Dearer);
    assert_eq!(of(&[8.9; 15], &[10.0; 15]).outcome, Outcome::Cheaper);
}

#[test]
fn few_rounds_and_impossible_costs_are_undecided() {
    let four = of(&[50.0; 4], &[25.0; 4]);
    assert_eq!((four.interval, four.outcome), (None, Outcome::Undecided));
    assert!((four.ratio.unwrap() - 2.0).abs() < 1e-9);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let costs = [50.0, 50.0, bad, 50.0, 50.0];
        for verdict in [of(&costs, &[50.0; 5]), of(&[50.0; 5], &costs)] {
            assert_eq!((verdict.ratio, verdict.interval), (None, None));
            assert_eq!(verdict.outcome, Outcome::Undecided);
        }
    }
    assert_eq!(of(&[], &[]).ratio, None);
}

#[test]
fn a_round_cut_off_is_left_out() {
    let verdict = of(&[60.0, 60.0, 60.0, 60.0, 60.0, 900.0], &[30.0; 5]);
    assert_eq!(verdict, of(&[60.0; 5], &[30.0; 5]));
}

/// The costs of 100 and 90 ns are whole ns; so is each up to half of one off.
#[test]
fn whole_nanoseconds_widen_the_interval() {
    let allowance = Allowance {
        comparisons: 1,
        quantum_ns: 1.0,
    };
    let [low, high] = ratio(&[100.0; 5], &[90.0; 5], allowance).interval.unwrap();
    let (least, greatest) = (99.5 / 90.5, 100.5 / 89.5);
    assert!(
        (low - least).abs() < 1e-4 && (high - greatest).abs() < 1e-4,
        "{low} {high}"
    );
}

/// Bonferroni: with nine comparisons each interval is that of 1 % / 9.
#[test]
fn several_comparisons_widen_each_interval() {
    let costs: Vec<f64> = (0..20)
        .map(|round| 60.0 + f64::from(round * 7 % 5))
        .collect();
    let width = |comparisons| {
        let allowance = Allowance {
            comparisons,
            ..Allowance::NONE
        };
        let of = ratio(&costs, &[50.0; 20], allowance);
        assert!((of.confidence.unwrap() - (1.0 - 0.01 / comparisons as f64)).abs() < 1e-12);
        let [low, high] = of.interval.unwrap();
        high - low
    };
    assert!(width(9) > 1.2 * width(1), "{} {}", width(9), width(1));
}

/// Null runs with nine comparisons: in 1 % of runs any of them misses.
#[test]
fn nine_comparisons_together_miss_in_1_percent_of_runs() {
    let allowance = Allowance {
        comparisons: 9,
        quantum_ns: 0.0,
    };
    let misses = |seed| {
        let mut noise = Noise::new(seed);
        (0..9).any(|_| {
            let logs = noise.autocorrelated(20, 0.3).collect::<Vec<_>>();
            let costs: Vec<f64> = logs.iter().map(|log| 50.0 * (0.1 * log).exp()).collect();
            let [low, high] = ratio(&costs, &[50.0; 20], allowance).interval.unwrap();
            low > 1.0 || high < 1.0
        })
    };
    let missed = (0..100).filter(|seed| misses(*seed)).count();
    assert!(missed <= 4, "{missed} of 100");
}

fn positive() -> impl Strategy<Value = f64> {
    use prop::num::f64::{NORMAL, POSITIVE, SUBNORMAL};
    prop_oneof![POSITIVE | NORMAL, POSITIVE | SUBNORMAL]
}

proptest! {
    /// Whatever is measured, the JSON can be read back.
    #[test]
    fn verdicts_hold_no_infinity(
        extreme in prop::collection::vec((positive(), positive()), 0..5),
        plain in prop::collection::vec((1e-3..1e6, 1e-3..1e6), 0..20),
    ) {
        for rounds in [extreme, plain] {
            let (costs, ktime): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let verdict = of(&costs, &ktime);
            let json = serde_json::to_string(&verdict).unwrap();
            let back: Ratio = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(back.outcome, verdict.outcome);
            prop_assert_eq!(back.interval.is_some(), verdict.interval.is_some());
        }
    }

    /// Turned round, the ratio is its inverse and the verdict the opposite.
    #[test]
    fn swapping_both_inverts_the_ratio(
        rounds in prop::collection::vec((40.0..60.0, 40.0..60.0), 3..20),
    ) {
        let (costs, ktime): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        let (there, back) = (of(&costs, &ktime), of(&ktime, &costs));
        prop_assert!((there.ratio.unwrap() * back.ratio.unwrap() - 1.0).abs() < 1e-9);
        prop_assert!(there.outcome != Outcome::Dearer || back.outcome != Outcome::Dearer);
    }
}
