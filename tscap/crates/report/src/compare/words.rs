//! Stamps, verdicts and notices of a comparison as people read them.

use tscap_base::text::numbers::counted;
use tscap_clock::{StampPath, StampSource};
use tscap_lab::compare::schema::{Comparison, LossPoint, Metric};
use tscap_lab::compare::statistics::{
    advice, family_sentence, interrupt_sentences, mean_interval, power_sentence,
};

/// A stamp by the function that read its clock; the floor is none.
pub(crate) fn stamp(source: Option<StampSource>, path: &str) -> &'static str {
    match StampPath::by_function(path) {
        Some(path) => path.name(),
        None => source.map_or("none", StampSource::name),
    }
}

/// What is compared, where there is little room.
pub(crate) fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::Read => "read",
        Metric::Frame => "frame",
        Metric::Program => "program",
    }
}

/// The 95 % interval of the mean loss of the rounds, %; `None` of too few.
pub(crate) fn interval_percent(point: &LossPoint) -> Option<[f64; 2]> {
    let ends = mean_interval(&point.rounds)?;
    Some(ends.map(|end| 100.0 * end.clamp(0.0, 1.0)))
}

/// What the rounds say; with all of it how sure that is, and what to do about it.
pub(crate) fn verdicts(comparison: &Comparison, is_whole: bool) -> Vec<String> {
    let verdicts = comparison.verdicts.iter();
    let sentences = verdicts.map(|verdict| format!("{}: {verdict}", verdict.metric));
    let advice = is_whole.then(|| advice(&comparison.verdicts)).flatten();
    let advice = advice.map(str::to_owned);
    let interrupts = comparison.interrupts_off.iter();
    let interrupts = interrupts.flat_map(interrupt_sentences);
    let of_all = if is_whole {
        [family_sentence(comparison), power_sentence(comparison)]
    } else {
        [None, None]
    };
    sentences
        .chain(interrupts)
        .chain(of_all.into_iter().flatten())
        .chain(advice)
        .collect()
}

/// What must be known before any figure.
pub(crate) fn notices(comparison: &Comparison) -> Vec<String> {
    let rounds = counted(comparison.method.rounds.into(), "whole round");
    tscap_document::notices(&comparison.about, &comparison.warnings, rounds)
}
