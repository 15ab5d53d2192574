//! A comparison on a terminal.

use super::table::Table;
use super::tables;
use super::words::{notices, verdicts};
use crate::measuring::compare::schema::Comparison;
use crate::text::table::{WIDTH, indented, indented_within};

/// Column of the facts' names.
const NAMES: usize = 16;

/// What a comparison found: warnings first, verdicts last.
pub fn text(comparison: &Comparison) -> String {
    let tables = [
        Some(tables::costs(comparison)),
        Some(tables::frame_costs(comparison)),
        tables::outliers(comparison),
        tables::interrupts_off(comparison),
        Some(tables::beside_paper(comparison)),
        tables::delays(comparison),
        tables::interval_errors(comparison),
        tables::losses(comparison),
    ];
    let tables = tables.into_iter().flatten();
    let environment = tables::environment(comparison);
    let mut lines = tabular(&notices(comparison), &environment, tables);
    if !comparison.verdicts.is_empty() {
        lines.extend([String::new(), "Verdicts".to_owned()]);
        let verdicts = verdicts(comparison);
        lines.extend(verdicts.iter().flat_map(|verdict| indented(verdict, "  ")));
    }
    lines.join("\n") + "\n"
}

/// Notices, where and how it was measured, and tables.
pub(super) fn tabular(
    notices: &[String],
    environment: &Table,
    tables: impl IntoIterator<Item = Table>,
) -> Vec<String> {
    let notices = notices.iter().flat_map(|notice| indented(notice, ""));
    let mut lines: Vec<String> = notices.collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(facts(environment, WIDTH));
    for table in tables {
        lines.push(String::new());
        lines.extend(table.lines());
    }
    lines
}

/// Rows of a name and a fact, which may be long, in lines of at most `width` columns.
pub(super) fn facts(table: &Table, width: usize) -> Vec<String> {
    let fact = |row: &Vec<String>| {
        let mut lines = indented_within(&row[1], &" ".repeat(NAMES), width);
        lines[0].replace_range(..NAMES, &format!("{:<NAMES$}", row[0]));
        lines
    };
    table.rows.iter().flat_map(fact).collect()
}
