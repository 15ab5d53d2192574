//! A table, as text and as HTML.

use maud::{Markup, html};

use super::words::plain;

/// Between two columns of text.
const SPACE: &str = "  ";

/// A table: the first column names its row.
pub struct Table {
    /// Empty if what stands above says it.
    pub title: String,
    /// Empty if the rows need none; else as long as each of them.
    pub head: Vec<&'static str>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
    /// Columns of words, which begin at the left; figures end at the right.
    pub words: &'static [usize],
    /// What to know to read it.
    pub notes: Vec<String>,
}

impl Table {
    /// Lines of text: title, head and rows.
    pub fn lines(&self) -> Vec<String> {
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(&head)
            .chain(&self.rows)
            .map(|row| row.iter().map(|cell| plain(cell)).collect())
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(
                |(column, (cell, &width))| match self.words.contains(&column) {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                },
            );
            let line = cells.collect::<Vec<_>>().join(SPACE);
            line.trim_end().to_owned()
        };
        let mut lines = vec![plain(&self.title)];
        lines.extend(rows.iter().map(line));
        lines
    }

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
