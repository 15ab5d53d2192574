//! A stamp against `ktime`.

use super::interval::{mean, t_interval};
use crate::clock::StampPath;
use crate::compare::Stamp;
use crate::compare::schema::{Metric, Outcome, Verdict};

/// Ratios this near to 1 are equal for all purposes, …
const MARGIN: f64 = 0.03;
/// … and so are costs this near to each other.
const MARGIN_NS: f64 = 1.0;

/// Compares the costs of a stamp with those of `ktime` in the same rounds, in the
/// order of time, ns; rounds that only one of both has are left out.
///
/// The ratio of each round is taken first, so that what slowed the whole machine
/// in that round drops out; the interval allows for noise that lasts for rounds.
/// Undecided with fewer than three rounds, and if a round's cost is not above 0 or
/// no number.
pub fn verdict(metric: Metric, stamp: Stamp, costs: &[f64], ktime: &[f64]) -> Verdict {
    let rounds = costs.len().min(ktime.len());
    let logs = logs(&costs[..rounds]).zip(logs(&ktime[..rounds]));
    let of_ratio = logs.as_ref().map(|(costs, ktime)| {
        let of_round = costs.iter().zip(ktime).map(|(cost, ktime)| cost - ktime);
        of_round.collect::<Vec<_>>()
    });
    let ratio = of_ratio.as_deref().map(|logs| mean(logs).exp());
    let interval = of_ratio.as_deref().and_then(t_interval);
    let margin = match &logs {
        Some((_, ktime)) => (MARGIN_NS / mean(ktime).exp()).clamp(MARGIN, f64::MAX),
        None => MARGIN,
    };
    // JSON has no infinity; a ratio near one says nothing anyway.
    let interval = interval
        .map(|ends| ends.map(f64::exp))
        .filter(|ends| ends.iter().all(|end| end.is_normal()));
    Verdict {
        metric,
        source: stamp.map(StampPath::source),
        path: stamp.map_or("", StampPath::function).into(),
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
