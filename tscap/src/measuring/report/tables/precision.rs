//! How precise stamps are.

use super::{Table, head, row};
use crate::measuring::compare::schema::{Comparison, Precision};
use crate::measuring::report::words::{maybe, number, stamp};
use crate::text::numbers::grouped;

/// Receive stamp less send stamp.
pub(in crate::measuring::report) fn delays(comparison: &Comparison) -> Option<Table> {
    let rows = precision(comparison, |name, precision| {
        row(name, precision.delay_ns.as_ref(), grouped(precision.lost))
    });
    let head = head("traffic, stamp", "lost");
    Table::figures("Delay: receive stamp less send stamp, ns", &head, rows)
        .note(
            "from the sender's reading of the TSC for tsc, else from its reading of CLOCK_TAI, \
             which comes some 30 to 50 ns later",
        )
        .if_any()
}

/// |inter-arrival − inter-send|.
pub(in crate::measuring::report) fn interval_errors(comparison: &Comparison) -> Option<Table> {
    let rows = precision(comparison, |name, precision| {
        let correlation = maybe(precision.correlation, number);
        row(name, precision.interval_error_ns.as_ref(), correlation)
    });
    let from = comparison.subjects.iter().flat_map(|subject| {
        let stamp = stamp(subject.source, &subject.path);
        let each = subject.precision.iter();
        each.map(move |precision| format!("{stamp} {}", precision.intervals_from))
    });
    let mut from: Vec<String> = from.collect();
    from.dedup();
    let head = head("traffic, stamp", "corr");
    Table::figures("|inter-arrival − inter-send|, ns", &head, rows)
        .note(format!(
            "corr: correlation with the cost of the frame's stamp; intervals from: {}",
            from.join(", ")
        ))
        .if_any()
}

/// A row for each stamp of each pattern, patterns together.
fn precision(
    comparison: &Comparison,
    row: impl Fn(String, &Precision) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for pattern in patterns(comparison) {
        for subject in &comparison.subjects {
            let stamp = stamp(subject.source, &subject.path);
            let of = subject.precision.iter();
            let of = of.filter(|precision| precision.pattern == pattern);
            rows.extend(of.map(|it| row(format!("{pattern}, {stamp}"), it)));
        }
    }
    rows
}

/// The traffic patterns, in the order in which they come.
pub(in crate::measuring::report) fn patterns(comparison: &Comparison) -> Vec<&str> {
    let mut patterns = Vec::new();
    for precision in comparison
        .subjects
        .iter()
        .flat_map(|subject| &subject.precision)
    {
        if !patterns.contains(&precision.pattern.as_str()) {
            patterns.push(&precision.pattern);
        }
    }
    patterns
}
