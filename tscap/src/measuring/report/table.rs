//! A table as HTML.

use maud::{Markup, html};

pub use crate::text::table::{Table, columns};

impl Table {
    /// A table of HTML with its notes.
    pub fn markup(&self) -> Markup {
        let class = |column: usize| self.words.contains(&column).then_some("words");
        html! {
            div.table {
                table class=[(!self.head.is_empty()).then_some("rows")] {
                    @if !self.title.is_empty() {
                        caption { (self.title) }
                    }
                    thead {
                        tr {
                            @for (column, name) in self.head.iter().enumerate() {
                                th scope="col" class=[class(column)] { (name) }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (column, cell) in row.iter().enumerate() {
                                    @if column == 0 {
                                        th scope="row" class="words" { (cell) }
                                    } @else {
                                        td class=[class(column)] data-column=[self.head.get(column)] { (cell) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @for note in &self.notes {
                p.note { (note) }
            }
        }
    }
}
