//! A stamp against `ktime`, or costs against others.

use super::interval::RoundsMean;
use crate::compare::Stamp;
use crate::compare::schema::{Metric, Outcome, Ratio, Verdict};
use tscap_clock::StampPath;
use tscap_statistics::mean;

/// Ratios this near to 1 are equal for all purposes, …
const MARGIN: f64 = 0.03;
/// … and so are costs this near to each other.
const MARGIN_NS: f64 = 1.0;
/// Of runs, so many have an interval that misses the true ratio.
const MISSES: f64 = 0.01;

/// What an interval allows for besides the spread of the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Comparisons in the run. All of their intervals hold together in 99 % of runs, for
    /// which each alone holds in 1 − 1 %/comparisons (Bonferroni).
    pub comparisons: usize,
    /// Step from one possible cost to the next, ns.
    pub quantum_ns: f64,
}

impl Allowance {
    /// One comparison of costs without steps.
    pub const NONE: Self = Self {
        comparisons: 1,
        quantum_ns: 0.0,
    };
}

/// Compares the costs of a stamp with those of `ktime`.
pub fn verdict(
    metric: Metric,
    stamp: Stamp,
    costs: &[f64],
    ktime: &[f64],
    allowance: Allowance,
) -> Verdict {
    Verdict {
        metric,
        source: stamp.map(StampPath::source),
        path: stamp.map_or("", StampPath::function).into(),
        over_ktime: ratio(costs, ktime, allowance),
    }
}

/// Compares costs with others of the same rounds, in the order of time, ns; rounds
/// that only one of both has are left out.
///
/// The ratio of each round is taken first, so that what slowed the whole machine
/// in that round drops out; the interval allows for noise that lasts for rounds.
/// Undecided with fewer than five rounds, with rounds that correlate by more than 0.9,
/// and if a round's cost is not above 0 or no number.
pub fn ratio(costs: &[f64], others: &[f64], allowance: Allowance) -> Ratio {
    let rounds = costs.len().min(others.len());
    let logs = logs(&costs[..rounds]).zip(logs(&others[..rounds]));
    let misses = MISSES / allowance.comparisons.max(1) as f64;
    let of = logs.as_ref().and_then(|(costs, others)| {
        let of_round = costs.iter().zip(others).map(|(cost, other)| cost - other);
        let known_to = |logs| allowance.quantum_ns / 2.0 / mean(logs).exp();
        let known_to = known_to(costs) + known_to(others);
        RoundsMean::of(&of_round.collect::<Vec<_>>(), misses, known_to)
    });
    let margin = match &logs {
        Some((_, others)) => (MARGIN_NS / mean(others).exp()).clamp(MARGIN, f64::MAX),
        None => MARGIN,
    };
    let of = of.as_ref();
    // JSON has no infinity; a ratio near one says nothing anyway.
    let interval = of
        .and_then(|of| of.interval)
        .map(|ends| ends.map(f64::exp))
        .filter(|ends| ends.iter().all(|end| end.is_normal()));
    let detectable = of
        .and_then(|of| of.reach)
        .map(|reach| (1.0 + margin) * reach.exp());
    Ratio {
        ratio: of.map(|of| of.mean.exp()).filter(|ratio| ratio.is_normal()),
        interval,
        margin,
        outcome: interval.map_or(Outcome::Undecided, |ends| outcome(ends, margin)),
        confidence: Some(1.0 - misses),
        lag_1: of.and_then(|of| of.lag_1),
        detectable: detectable.filter(|ratio| ratio.is_normal()),
    }
}

/// `None` unless there are costs and all of them are above 0.
fn logs(costs: &[f64]) -> Option<Vec<f64>> {
    let all = !costs.is_empty() && costs.iter().all(|cost| cost.is_finite() && *cost > 0.0);
    all.then(|| costs.iter().map(|cost| cost.ln()).collect())
}

pub(super) fn outcome([low, high]: [f64; 2], margin: f64) -> Outcome {
    if high < 1.0 - margin {
        Outcome::Cheaper
    } else if low > 1.0 + margin {
        Outcome::Dearer
    } else if low >= 1.0 - margin && high <= 1.0 + margin {
        Outcome::WithinMargin
    } else {
        Outcome::Undecided
    }
}

#[cfg(test)]
mod tests;
