//! What all verdicts of a run hold for, and what they could find.

use crate::compare::schema::{Comparison, Metric};

/// What the intervals allow for; `None` without one, and for what an earlier tscap
/// recorded.
pub fn family_sentence(comparison: &Comparison) -> Option<String> {
    let of_verdicts = comparison.verdicts.iter().map(|of| &of.over_ktime);
    let off = comparison.interrupts_off.iter();
    let of_interrupts = off.flat_map(|of| [&of.read, &of.p99]);
    let all = of_verdicts.chain(of_interrupts);
    let all: Vec<f64> = all.filter_map(|of| of.confidence).collect();
    let each = 100.0 * all.first()?;
    Some(format!(
        "all {} intervals hold together in 99 % of runs ({each:.2} % each: Bonferroni), while the \
         lag-1 correlation of the rounds is at most 0.97; lag 1: as estimated from the rounds",
        all.len()
    ))
}

/// The least difference that a run like this finds; `None` without an interval.
pub fn power_sentence(comparison: &Comparison) -> Option<String> {
    let of = |metric: Metric| {
        let of = comparison.verdicts.iter().filter(|of| of.metric == metric);
        let worst = of
            .filter_map(|of| of.over_ktime.detectable)
            .max_by(f64::total_cmp)?;
        Some(format!("{worst:.2}× in {metric}"))
    };
    let all = [Metric::Read, Metric::Frame, Metric::Program];
    let all: Vec<String> = all.into_iter().filter_map(of).collect();
    (!all.is_empty()).then(|| {
        format!(
            "what {} rounds with this noise find in 80 of 100 runs: a difference of {}",
            comparison.method.rounds,
            all.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixtures;

    #[test]
    fn the_worst_of_each_metric_is_said() {
        let mut comparison = fixtures::comparison();
        assert!(comparison.verdicts.len() > 1);
        for (of, detectable) in comparison.verdicts.iter_mut().zip([1.25, 1.5]) {
            of.metric = Metric::Program;
            of.over_ktime.detectable = Some(detectable);
        }
        assert_eq!(
            power_sentence(&comparison).unwrap(),
            "what 5 rounds with this noise find in 80 of 100 runs: a difference of 1.50× in the \
             whole program for a frame"
        );
        let all = family_sentence(&comparison).unwrap();
        assert!(all.starts_with("all 4 intervals hold together"), "{all}");
    }

    #[test]
    fn of_an_earlier_tscap_nothing_is_said() {
        let mut comparison = fixtures::comparison();
        comparison.interrupts_off.clear();
        for of in comparison.verdicts.iter_mut().map(|of| &mut of.over_ktime) {
            (of.confidence, of.lag_1, of.detectable) = (None, None, None);
        }
        assert_eq!(family_sentence(&comparison), None);
        assert_eq!(power_sentence(&comparison), None);
    }
}
