//! A table as HTML.

use maud::{Markup, html};

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
