//! A stamp against `ktime`, or costs against others.

use super::interval::{mean, t_interval};
use crate::clock::StampPath;
use crate::compare::Stamp;
use crate::compare::schema::{Metric, Outcome, Ratio, Verdict};

/// Ratios this near to 1 are equal for all purposes, …
const MARGIN: f64 = 0.03;
/// … and so are costs this near to each other.
const MARGIN_NS: f64 = 1.0;

/// Compares the costs of a stamp with those of `ktime`.
pub fn verdict(metric: Metric, stamp: Stamp, costs: &[f64], ktime: &[f64]) -> Verdict {
    let Ratio {
        ratio,
        interval,
        margin,
        outcome,
    } = ratio(costs, ktime);
    Verdict {
        metric,
        source: stamp.map(StampPath::source),
        path: stamp.map_or("", StampPath::function).into(),
        ratio,
        interval,
        margin,
        outcome,
    }
}

/// Compares costs with others of the same rounds, in the order of time, ns; rounds
/// that only one of both has are left out.
///
/// The ratio of each round is taken first, so that what slowed the whole machine
/// in that round drops out; the interval allows for noise that lasts for rounds.
/// Undecided with fewer than three rounds, and if a round's cost is not above 0 or
/// no number.
pub fn ratio(costs: &[f64], others: &[f64]) -> Ratio {
    let rounds = costs.len().min(others.len());
    let logs = logs(&costs[..rounds]).zip(logs(&others[..rounds]));
    let of_ratio = logs.as_ref().map(|(costs, others)| {
        let of_round = costs.iter().zip(others).map(|(cost, other)| cost - other);
        of_round.collect::<Vec<_>>()
    });
    let ratio = of_ratio.as_deref().map(|logs| mean(logs).exp());
    let interval = of_ratio.as_deref().and_then(t_interval);
    let margin = match &logs {
        Some((_, others)) => (MARGIN_NS / mean(others).exp()).clamp(MARGIN, f64::MAX),
        None => MARGIN,
    };
    // JSON has no infinity; a ratio near one says nothing anyway.
    let interval = interval
        .map(|ends| ends.map(f64::exp))
        .filter(|ends| ends.iter().all(|end| end.is_normal()));
    Ratio {
        ratio: ratio.filter(|ratio| ratio.is_normal()),
        interval,
        margin,
        outcome: interval.map_or(Outcome::Undecided, |ends| outcome(ends, margin)),
    }
}

/// `None` unless there are costs and all of them are above 0.
fn logs(costs: &[f64]) -> Option<Vec<f64>> {
    let all = !costs.is_empty() && costs.iter().all(|cost| cost.is_finite() && *cost > 0.0);
    all.then(|| costs.iter().map(|cost| cost.ln()).collect())
}

fn outcome([low, high]: [f64; 2], margin: f64) -> Outcome {
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
