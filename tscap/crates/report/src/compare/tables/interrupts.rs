//! Interrupts on and off around a stamp, side by side.

use super::{Table, head, row};
use crate::compare::words::stamp;
use tscap_base::text::numbers::grouped;
use tscap_document::words::{maybe, number};
use tscap_lab::compare::schema::Comparison;
use tscap_statistics::median;

/// `None` unless it was asked for.
pub(crate) fn interrupts_off(comparison: &Comparison) -> Option<Table> {
    let rows = comparison.interrupts_off.iter().flat_map(|of| {
        let stamp = stamp(Some(of.source), &of.path);
        [("on", &of.on), ("off", &of.off)].map(|(word, way)| {
            let over = grouped(way.over_1_us);
            let mut row = row(format!("{stamp}, {word}"), Some(&way.all), over);
            row.insert(1, maybe(median(&way.read_ns), number));
            row
        })
    });
    let mut head = head("interrupts", ">1 µs");
    head.insert(1, "read");
    Table::figures("Interrupts off around the stamp, ns", &head, rows.collect())
        .note(
            "read: one of many unrolled calls, median of the rounds; off: each call turns them off \
             and on. All else on frames, where that is outside of both checkpoints: nothing can \
             interrupt what is measured, but what runs this machine, if it is virtual, and what \
             can't be masked. Less the checkpoint alone with interrupts on; >1 µs: so many frames",
        )
        .if_any()
}
