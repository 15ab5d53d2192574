//! A comparison on a terminal.

use super::layout::{Layout, Told, Worth};
use super::tables;
use super::words::{notices, verdicts};
use tscap_lab::compare::schema::Comparison;

/// What a comparison found: warnings, then the verdicts and what a stamp costs; further tables
/// with all of it; last where and how.
pub fn text(comparison: &Comparison, layout: Layout) -> String {
    let mut told = Told::new(layout, &notices(comparison));
    if !comparison.verdicts.is_empty() {
        told.verdicts(&verdicts(comparison, layout.is_whole));
    }
    told.answer(tables::costs(comparison));
    let asked = tables::interrupts_off(comparison);
    if layout.is_whole {
        let tables = [
            Some(tables::frame_costs(comparison)),
            tables::outliers(comparison),
            asked,
            Some(tables::beside_paper(comparison)),
            tables::delays(comparison),
            tables::interval_errors(comparison),
            tables::losses(comparison),
        ];
        tables
            .into_iter()
            .flatten()
            .for_each(|table| told.table(table));
    } else if let Some(table) = asked {
        told.worth(Worth::Detail);
        told.answer(table);
    }
    told.conditions(&tables::environment(comparison));
    told.finish()
}
