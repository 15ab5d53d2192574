//! The figures of the verdicts.

use super::{Table, columns};
use crate::compare::words::stamp;
use tscap_document::words::maybe;
use tscap_lab::compare::schema::Comparison;

/// The figures of the verdicts.
pub(crate) fn verdicts(comparison: &Comparison) -> Table {
    let rows = comparison.verdicts.iter().map(|of| {
        vec![
            stamp(of.source, &of.path).to_owned(),
            of.metric.to_string(),
            maybe(of.over_ktime.ratio, |ratio| format!("{ratio:.3}")),
            maybe(of.over_ktime.interval, |[low, high]| {
                format!("{low:.3}–{high:.3}")
            }),
            maybe(of.over_ktime.lag_1, |lag_1| format!("{lag_1:.2}")),
            format!("±{:.3}", of.over_ktime.margin),
            maybe(of.over_ktime.detectable, |ratio| format!("{ratio:.3}")),
        ]
    });
    Table::figures(
        "Cost over that of ktime",
        &columns("stamp | cost | ratio | 99 % interval | lag 1 | margin | detectable"),
        rows.collect(),
    )
    .words(&[0, 1])
    .note(
        "ratio: geometric mean over the rounds; lag 1: correlation of the ratio \
         of a round with that of the next; margin: ratios so near to 1 are equal \
         for all purposes; detectable: a true ratio of this, or one over it, is \
         found to be beyond the margin in 80 of 100 runs like this",
    )
}
