//! How much of a result is told as text, and in lines of which width.

use super::table::Table;
use tscap_base::text::table::{PROSE, indented_within};

/// Column of the facts' names.
const NAMES: usize = 16;
/// Facts that are told beside an answer, in this order; all of them are told by -v.
const BRIEF: [&str; 4] = ["CPU", "kernel", "method", "ran"];

/// Facts on what figures are worth, which are told in any case.
const WORTH: [&str; 2] = ["intervals", "delays"];

/// How a result is told as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns that a line may take, of prose no more than 100; a longer word stays whole.
    pub columns: usize,
    /// All of it: further tables, the whole machine, the papers' figures. Else the answer.
    pub is_whole: bool,
}

#[cfg(test)]
impl Layout {
    /// All of it, as it goes to a pipe.
    pub const WHOLE: Self = Self {
        columns: usize::MAX,
        is_whole: true,
    };
    /// All of it, on a terminal of the usual size.
    pub const WHOLE_THERE: Self = Self {
        columns: 79,
        is_whole: true,
    };
    /// The answer, on a terminal of the usual size.
    pub const BRIEF: Self = Self {
        columns: 79,
        is_whole: false,
    };
}

/// A text that grows, part by part.
pub(super) struct Told {
    layout: Layout,
    lines: Vec<String>,
}

impl Told {
    /// What must be known before any figure comes first.
    pub fn new(layout: Layout, notices: &[String]) -> Self {
        let mut told = Self {
            layout,
            lines: Vec::new(),
        };
        notices.iter().for_each(|notice| told.say(notice, ""));
        told
    }

    /// An empty line, unless nothing stands above.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    /// A sentence in lines that fit, each after `indent`.
    pub fn say(&mut self, text: &str, indent: &str) {
        let columns = self.layout.columns.min(PROSE);
        self.lines.extend(indented_within(text, indent, columns));
    }

    /// A line as it is.
    pub fn line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// A title and sentences under it.
    pub fn section(&mut self, title: &str, sentences: &[String]) {
        self.gap();
        self.say(title, "");
        sentences.iter().for_each(|it| self.say(it, "  "));
    }

    /// A table, apart from what stands above.
    pub fn table(&mut self, table: &Table) {
        self.gap();
        self.lines.extend(table.lines_within(self.layout.columns));
    }

    /// The same without notes, unless all is told.
    pub fn answer(&mut self, table: Table) {
        match self.layout.is_whole {
            true => self.table(&table),
            false => self.table(&Table {
                notes: Vec::new(),
                ..table
            }),
        }
    }

    /// A table whose title stands above it.
    pub fn under(&mut self, table: &Table, indent: &str) {
        let columns = self.layout.columns.saturating_sub(indent.len());
        let lines = table.lines_within(columns).into_iter().skip(1);
        let lines = lines.map(|line| format!("{indent}{line}"));
        self.lines.extend(lines);
    }

    /// Where and how it was measured: in a sentence unless all is told.
    pub fn conditions(&mut self, facts: &Table) {
        self.gap();
        if self.layout.is_whole {
            let lines: Vec<_> = facts.rows.iter().flat_map(|row| self.fact(row)).collect();
            self.lines.extend(lines);
            return;
        }
        for row in facts.rows.iter().filter(|row| WORTH.contains(&&*row[0])) {
            self.say(&format!("{}: {}", row[0], row[1]), "");
        }
        let brief = BRIEF.iter().filter_map(|name| {
            let row = facts.rows.iter().find(|row| row[0] == *name)?;
            Some(row[1].as_str())
        });
        let brief: Vec<_> = brief.collect();
        self.say(&format!("On {}; -v tells more", brief.join("; ")), "");
    }

    /// A name and a fact, which may be long.
    fn fact(&self, row: &[String]) -> Vec<String> {
        let columns = self.layout.columns.min(PROSE);
        let mut lines = indented_within(&row[1], &" ".repeat(NAMES), columns);
        lines[0].replace_range(..NAMES, &format!("{:<NAMES$}", row[0]));
        lines
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.lines.join("\n") + "\n"
    }
}
