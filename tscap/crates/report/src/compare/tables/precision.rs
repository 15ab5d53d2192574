//! How precise stamps are.

use super::{Table, head, row};
use crate::compare::words::stamp;
use tscap_base::text::numbers::grouped;
use tscap_document::words::{maybe, number};
use tscap_lab::compare::schema::{Comparison, Precision};

/// Receive stamp less send stamp.
pub(crate) fn delays(comparison: &Comparison) -> Option<Table> {
    let rows = precision(comparison, |name, precision| {
        row(name, precision.delay_ns.as_ref(), grouped(precision.lost))
    });
    let head = head("traffic, stamp", "lost");
    Table::figures("Delay: receive stamp less send stamp, ns", &head, rows)
        .note(
            "from the sender's reading of the TSC for tsc, else from its reading of CLOCK_TAI, \
             which comes some 30 to 50 ns later; kernel: the stamp of the kernel's own stack, as a \
             packet socket is told it (SO_TIMESTAMPNS) and tcpdump has it",
        )
        .if_any()
}

pub(crate) fn interval_errors(comparison: &Comparison) -> Option<Table> {
    let rows = precision(comparison, |name, precision| {
        let correlation = maybe(precision.correlation, number);
        row(name, precision.interval_error_ns.as_ref(), correlation)
    });
    let from = stamped(comparison).into_iter().flat_map(|(stamp, each)| {
        let each = each.iter();
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

/// The kernel's own stamp, where stamps are named.
pub(crate) const KERNEL: &str = "kernel";

/// Every stamp with its patterns, the kernel's own last.
pub(crate) fn stamped(comparison: &Comparison) -> Vec<(&'static str, &[Precision])> {
    let subjects = comparison.subjects.iter();
    let ours = subjects.map(|subject| {
        let name = stamp(subject.source, &subject.path);
        (name, &subject.precision[..])
    });
    let kernel = comparison.kernel_stamp.as_ref();
    ours.chain(kernel.map(|kernel| (KERNEL, &kernel.precision[..])))
        .collect()
}

/// A row for each stamp of each pattern, patterns together.
fn precision(
    comparison: &Comparison,
    row: impl Fn(String, &Precision) -> Vec<String>,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for pattern in patterns(comparison) {
        for (stamp, each) in stamped(comparison) {
            let of = each.iter();
            let of = of.filter(|precision| precision.pattern == pattern);
            rows.extend(of.map(|it| row(format!("{pattern}, {stamp}"), it)));
        }
    }
    rows
}

/// The traffic patterns, in the order in which they come.
pub(crate) fn patterns(comparison: &Comparison) -> Vec<&str> {
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
