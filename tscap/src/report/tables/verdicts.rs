//! The figures of the verdicts.

use super::Table;
use crate::compare::schema::Comparison;
use crate::report::words::{maybe, stamp};

/// The figures of the verdicts.
pub(in crate::report) fn verdicts(comparison: &Comparison) -> Table {
    let rows = comparison.verdicts.iter().map(|of| {
        vec![
            stamp(of.source, &of.path).to_owned(),
            of.metric.to_string(),
            maybe(of.ratio, |ratio| format!("{ratio:.3}")),
            maybe(of.interval, |[low, high]| format!("{low:.3}–{high:.3}")),
            format!("±{:.3}", of.margin),
        ]
    });
    Table {
        title: "Cost over that of ktime".to_owned(),
        head: vec!["stamp", "cost", "ratio", "99 % interval", "margin"],
        rows: rows.collect(),
        words: &[0, 1],
        notes: vec!["geometric mean over the rounds with its t interval".to_owned()],
    }
}
