//! A table as HTML, and rows of distributions.

use maud::{Markup, html};

use super::words::{NOTHING, maybe, number, whole};
use tscap_base::text::numbers::grouped;
use tscap_statistics::Summary;

pub use tscap_base::text::table::{Table, columns};

/// A table of HTML with its notes.
pub(super) fn markup(table: &Table) -> Markup {
    let class = |column: usize| table.words.contains(&column).then_some("words");
    html! {
        div.table {
            table class=[(!table.head.is_empty()).then_some("rows")] {
                @if !table.title.is_empty() {
                    caption { (table.title) }
                }
                thead {
                    tr {
                        @for (column, name) in table.head.iter().enumerate() {
                            th scope="col" class=[class(column)] { (name) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                @if column == 0 {
                                    th scope="row" class="words" { (cell) }
                                } @else {
                                    td class=[class(column)] data-column=[table.head.get(column)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @for note in &table.notes {
            p.note { (note) }
        }
    }
}

/// The columns of [`row`].
const SUMMARY: [&str; 8] = ["n", "mean", "sd", "min", "p50", "p99", "p99.9", "max"];

/// The columns of a distribution, with those on either side.
pub fn head(first: &'static str, last: &'static str) -> Vec<&'static str> {
    std::iter::once(first)
        .chain(SUMMARY)
        .chain([last])
        .collect()
}

/// A distribution, between the name of the row and what else there is to say.
pub fn row(name: String, summary: Option<&Summary>, last: String) -> Vec<String> {
    let cells = match summary {
        None => [const { NOTHING }; SUMMARY.len()].map(str::to_owned),
        Some(of) => [
            grouped(of.n),
            number(of.mean),
            number(of.sd),
            whole(of.min),
            maybe(of.p50, whole),
            maybe(of.p99, whole),
            maybe(of.p99_9, whole),
            whole(of.max),
        ],
    };
    std::iter::once(name).chain(cells).chain([last]).collect()
}
