//! Tables as lines of text.

use super::escaped::escaped;
use super::fold::fold;

const SPACE: &str = "  ";
/// Before each line of a note.
const INDENT: &str = "  ";
/// Longest line of prose, in columns, unless a word is longer.
pub const PROSE: usize = 100;

/// A table: the first column names its row.
#[derive(Clone, Debug)]
pub struct Table {
    /// Empty if what stands above says it.
    pub title: String,
    /// Empty if the rows need none; else as long as each of them.
    pub head: Vec<&'static str>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
    /// Columns of words, which begin at the left; figures end at the right.
    pub words: &'static [usize],
    /// The first columns that name a row together.
    pub named_by: usize,
    /// What to know to read it.
    pub notes: Vec<String>,
}

/// The head of a table, written as a line: "stamp | cost | ratio".
pub fn columns(head: &'static str) -> Vec<&'static str> {
    head.split(" | ").collect()
}

/// Where the text of a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A row of cells, each at least as wide as its column.
pub fn row<'a>(cells: impl IntoIterator<Item = (&'a str, usize, Side)>, space: &str) -> String {
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
            named_by: 1,
            notes: Vec::new(),
        }
    }

    /// The same with words in these columns, figures in the others.
    #[must_use]
    pub fn words(self, words: &'static [usize]) -> Self {
        Self { words, ..self }
    }

    /// The same where so many of the first columns name a row together.
    #[must_use]
    pub fn named_by(self, named_by: usize) -> Self {
        Self { named_by, ..self }
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

    /// The same without notes.
    #[must_use]
    pub fn without_notes(self) -> Self {
        Self {
            notes: Vec::new(),
            ..self
        }
    }

    /// `None` for a table without rows.
    pub fn if_any(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Lines of text: title, head, rows in one piece, and notes.
    pub fn lines(&self) -> Vec<String> {
        self.lines_within(usize::MAX)
    }

    /// Lines of text, title, head, rows and notes, that fit `width` columns. Columns that do
    /// not fit beside the others stand below them, with the names of the rows once more.
    pub fn lines_within(&self, width: usize) -> Vec<String> {
        self.lines_of(width, usize::MAX)
    }

    /// The same without the columns that do not fit beside the others.
    pub fn first_lines_within(&self, width: usize) -> Vec<String> {
        self.lines_of(width, 1)
    }

    /// How often its rows stand below each other in `width` columns.
    pub fn blocks_within(&self, width: usize) -> usize {
        self.blocks(&self.columns(&self.cells()), width).len()
    }

    fn lines_of(&self, width: usize, blocks: usize) -> Vec<String> {
        let prose = width.min(PROSE);
        let notes = self.notes.iter();
        let notes = notes.flat_map(|note| indented_within(note, INDENT, prose));
        let title = indented_within(&self.title, "", prose);
        title
            .into_iter()
            .chain(self.figures_within(width, blocks))
            .chain(notes)
            .collect()
    }

    /// Head and rows, with the first `most` blocks of columns.
    fn figures_within(&self, width: usize, most: usize) -> Vec<String> {
        let rows = self.cells();
        let columns = self.columns(&rows);
        let line = |cells: &Vec<String>, shown: &[usize]| {
            let cells = shown.iter().filter_map(|&column| {
                let (width, side) = columns[column];
                Some((cells.get(column)?.as_str(), width, side))
            });
            row(cells, SPACE)
        };
        let blocks = self.blocks(&columns, width);
        let lines = blocks
            .iter()
            .take(most)
            .flat_map(|shown| rows.iter().map(|cells| line(cells, shown)));
        lines.collect()
    }

    /// Head and rows as they are printed.
    fn cells(&self) -> Vec<Vec<String>> {
        let head: Vec<String> = self.head.iter().map(|&name| name.to_owned()).collect();
        std::iter::once(&head)
            .chain(&self.rows)
            .map(|row| row.iter().map(|cell| escaped(cell).into_owned()).collect())
            .collect()
    }

    /// Width and side of each column of these rows.
    fn columns(&self, rows: &[Vec<String>]) -> Vec<(usize, Side)> {
        let length = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.head.len())
            .map(|column| {
                if self.words.contains(&column) {
                    (length(column), Side::Left)
                } else {
                    (length(column), Side::Right)
                }
            })
            .collect()
    }

    /// Which columns stand beside each other: as many as fit, behind those that name a row.
    fn blocks(&self, columns: &[(usize, Side)], width: usize) -> Vec<Vec<usize>> {
        let names: Vec<usize> = (0..self.named_by.min(columns.len())).collect();
        let taken = |shown: &[usize]| {
            let lengths = shown.iter().map(|&column| columns[column].0 + SPACE.len());
            lengths.sum::<usize>().saturating_sub(SPACE.len())
        };
        let mut blocks = vec![names.clone()];
        for (column, (length, _)) in columns.iter().enumerate().skip(names.len()) {
            let last = blocks.last_mut().expect("there is a block");
            let fits = taken(last) + SPACE.len() + length <= width;
            if fits || last.len() == names.len() {
                last.push(column)
            } else {
                blocks.push([&names[..], &[column]].concat())
            }
        }
        blocks
    }
}

/// Text in lines of at most `width` columns, unless a word is longer, each after `indent`.
pub fn indented_within(text: &str, indent: &str, width: usize) -> Vec<String> {
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
        let lines = table.lines_within(PROSE);
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

    #[test]
    fn columns_that_do_not_fit_stand_below() {
        let rows = [["a", "one", "1", "2"], ["a", "two", "33", "4"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        let head = ["name", "way", "first", "second"];
        let table = Table::figures("Title of many words", &head, rows);
        let table = table.words(&[0, 1]).named_by(2);
        assert_eq!(
            table.lines_within(24),
            [
                "Title of many words",
                "name  way  first  second",
                "a     one      1       2",
                "a     two     33       4",
            ]
        );
        assert_eq!(
            table.lines_within(18),
            [
                "Title of many",
                "words",
                "name  way  first",
                "a     one      1",
                "a     two     33",
                "name  way  second",
                "a     one       2",
                "a     two       4",
            ]
        );
        // However narrow, each column is there.
        let narrow = table.lines_within(1).join("\n");
        assert!(head.iter().all(|name| narrow.contains(name)), "{narrow}");
    }
}
