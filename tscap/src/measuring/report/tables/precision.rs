//! How precise stamps are.

use super::{Table, head, row};
use crate::measuring::compare::schema::{Comparison, Precision};
use crate::measuring::report::words::{maybe, number, stamp};
use crate::text::numbers::grouped;

/// Receive stamp less send stamp.
pub(in crate::measuring::report) fn delays(comparison: &Comparison) -> Option<Table> {
    precision(comparison, |name, precision| {
        row(name, precision.delay_ns.as_ref(), grouped(precision.lost))
    })
    .map(|rows| Table {
        title: "Delay: receive stamp less send stamp, ns".to_owned(),
        head: head("traffic, stamp", "lost"),
        rows,
        words: &[0],
        notes: vec![
            "from the sender's reading of the TSC for tsc, else from its reading of CLOCK_TAI, \
             which comes some 30 to 50 ns later"
                .to_owned(),
        ],
    })
}

/// |inter-arrival − inter-send|.
pub(in crate::measuring::report) fn interval_errors(comparison: &Comparison) -> Option<Table> {
    let rows = precision(comparison, |name, precision| {
        let correlation = maybe(precision.correlation, number);
        row(name, precision.interval_error_ns.as_ref(), correlation)
    })?;
    let all = comparison.subjects.iter();
    let mut from: Vec<String> = all
        .flat_map(|subject| {
            let each = subject.precision.iter();
            each.map(|precision| {
                format!(
                    "{} {}",
                    stamp(subject.source, &subject.path),
                    precision.intervals_from
                )
            })
        })
        .collect();
    from.dedup();
    Some(Table {
        title: "|inter-arrival − inter-send|, ns".to_owned(),
        head: head("traffic, stamp", "corr"),
        rows,
        words: &[0],
        notes: vec![format!(
            "corr: correlation with the cost of the frame's stamp; intervals from: {}",
            from.join(", ")
        )],
    })
}

/// A row for each stamp of each pattern, patterns together.
fn precision(
    comparison: &Comparison,
    row: impl Fn(String, &Precision) -> Vec<String>,
) -> Option<Vec<Vec<String>>> {
    let rows = patterns(comparison).into_iter().flat_map(|pattern| {
        let row = &row;
        comparison.subjects.iter().flat_map(move |subject| {
            let of = subject.precision.iter();
            let of = of.filter(move |precision| precision.pattern == pattern);
            of.map(move |precision| {
                row(
                    format!("{pattern}, {}", stamp(subject.source, &subject.path)),
                    precision,
                )
            })
        })
    });
    Some(rows.collect()).filter(|rows: &Vec<_>| !rows.is_empty())
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
