//! Tables as lines of text.

use super::escaped::escaped;
use super::fold::fold;

/// Between two columns.
const SPACE: &str = "  ";
/// Before each line of a note.
const INDENT: &str = "  ";
/// Longest line of a note, in columns, unless a word is longer.
pub(crate) const WIDTH: usize = 100;

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

/// The head of a table, written as a line: "stamp | cost | ratio".
pub fn columns(head: &'static str) -> Vec<&'static str> {
    head.split(" | ").collect()
}

/// Where the text of a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A row of cells, each at least as wide as its column.
pub(crate) fn row<'a>(
    cells: impl IntoIterator<Item = (&'a str, usize, Side)>,
    space: &str,
) -> String {
    let cells = cells.into_iter().map(|(text, width, side)| match side {
        Side::Left => format!("{text:<width$}"),
        Side::Right => format!("{text:>width$}"),
    });
    let row = cells.collect::<Vec<_>>().join(space);
    row.trim_end().to_owned()
}

impl Table {
    /// A table of figures, each row with its name.
    pub fn figures(
        title: impl Into<String>,
        head: &[&'static str],
        rows: Vec<Vec<String>>,
    ) -> Self {
        Self {
            title: title.into(),
            head: head.to_vec(),
            rows,
            words: &[0],
            notes: Vec::new(),
        }
    }

    /// The same with words in these columns, figures in the others.
    #[must_use]
    pub fn words(self, words: &'static [usize]) -> Self {
        Self { words, ..self }
    }

    /// The same with one note more.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        self.notes([note.into()])
    }

    /// The same with these notes too.
    #[must_use]
    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// `None` for a table without rows.
    pub fn if_any(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Lines of text: title, head, rows and notes, which fit [`WIDTH`].
    pub fn lines(&self) -> Vec<String> {
        self.lines_within(WIDTH)
    }

    /// The same with notes that fit `width` columns.
    pub(crate) fn lines_within(&self, width: usize) -> Vec<String> {
        let notes = self.notes.iter();
        let notes = notes.flat_map(|note| indented_within(note, INDENT, width));
        self.without_notes().into_iter().chain(notes).collect()
    }

    fn without_notes(&self) -> Vec<String> {
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(&head)
            .chain(&self.rows)
            .map(|row| row.iter().map(|cell| escaped(cell).into_owned()).collect())
            .collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let columns: Vec<(usize, Side)> = (0..self.head.len())
            .map(|column| match self.words.contains(&column) {
                true => (width(column), Side::Left),
                false => (width(column), Side::Right),
            })
            .collect();
        let line = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&columns);
            let cells = cells.map(|(cell, (width, side))| (cell.as_str(), *width, *side));
            row(cells, SPACE)
        };
        let mut lines = vec![escaped(&self.title).into_owned()];
        lines.extend(rows.iter().map(line));
        lines
    }
}

/// Text in lines that fit [`WIDTH`], each after `indent`.
pub(crate) fn indented(text: &str, indent: &str) -> Vec<String> {
    indented_within(text, indent, WIDTH)
}

/// Text in lines of at most `width` columns, unless a word is longer, each after `indent`.
pub(crate) fn indented_within(text: &str, indent: &str, width: usize) -> Vec<String> {
    let lines = fold(&escaped(text), indent.len(), Some(width));
    lines.iter().map(|line| format!("{indent}{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_figures_right() {
        let row = |name: &str, ns: &str| vec![name.to_owned(), ns.to_owned()];
        let rows = vec![row("ktime", "30.1"), row("a\x1b[2J", "–")];
        let table = Table::figures("Cost", &["stamp", "ns"], rows);
        let table = table.note(["word"; 25].join(" "));
        let lines = table.lines();
        assert_eq!(
            lines[..4],
            [
                "Cost",
                "stamp         ns",
                "ktime       30.1",
                r"a\u001b[2J     –",
            ]
        );
        assert_eq!(lines[4].len(), 2 + 19 * 5 - 1);
        assert_eq!(lines[5], format!("  {}", ["word"; 6].join(" ")));
    }
}
