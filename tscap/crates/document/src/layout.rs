//! How much of a result is told as text, and in lines of which width.

use super::table::Table;
use tscap_base::text::numbers::counted;
use tscap_base::text::table::{PROSE, indented_within};

/// Most lines of an answer: a screen of 24 lines, the last of which the prompt takes.
const SCREEN: usize = 23;
/// Lines of an answer that notices before it may take.
const OF_NOTICES: usize = 6;
/// Rows that a table is shortened to before it loses columns.
const FEW_ROWS: usize = 3;

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
    /// All of it: further tables, the whole machine, the papers' figures. Else the answer, on
    /// one screen.
    pub is_whole: bool,
}

impl Layout {
    /// All of it, as it goes to a pipe.
    pub const WHOLE: Self = Self {
        columns: usize::MAX,
        is_whole: true,
    };
}

#[cfg(any(test, feature = "fixtures"))]
impl Layout {
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

/// How soon a part is left out where an answer takes more than a screen; the last of each kind
/// goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// Stays in any case.
    Kept,
    /// What was asked for: shortened last.
    Answer,
    /// What became of packets, and what figures are worth.
    Account,
    /// What explains the rest: left out first.
    Detail,
}

/// A text that grows, part by part.
pub(super) struct TextWriter {
    layout: Layout,
    /// Of the parts that come.
    importance: Importance,
    /// The next part stands apart.
    is_apart: bool,
    /// It has been said that -v tells more.
    says_more: bool,
    parts: Vec<Part>,
}

/// What is done to the parts of one worth, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Fewer rows, columns and notes.
    Fewer,
    /// Parts are left out.
    Gone,
    /// One row is enough.
    Least,
}

/// Lines that stay or go together, or a list that can be shortened.
struct Part {
    importance: Importance,
    /// An empty line stands before it, unless it is the first one.
    is_apart: bool,
    body: Body,
}

enum Body {
    Lines(Vec<String>),
    Table(ShownTable),
    List(List),
}

/// A table, as much of it as there is room for.
struct ShownTable {
    table: Table,
    /// What stands before each line.
    indent: String,
    columns: usize,
    /// Whether the title stands above it already.
    is_under: bool,
    /// Rows that are left out.
    left_out: usize,
    /// Without the columns that do not fit beside the first ones.
    is_narrow: bool,
}

/// Entries of one or more lines each under a head.
#[derive(Clone)]
pub struct List {
    /// The line above the entries.
    pub head: String,
    /// As many as may be shown.
    pub entries: Vec<Vec<String>>,
    /// Entries that are left out.
    pub left_out: usize,
    /// What an entry is called.
    pub name: &'static str,
    /// How to see what is left out.
    pub advice: &'static str,
}

impl TextWriter {
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            importance: Importance::Answer,
            is_apart: false,
            says_more: false,
            parts: Vec::new(),
        }
    }

    /// What must be known before any figure: some lines of it, unless all is told.
    pub fn notices(&mut self, notices: &[String]) {
        let folded = notices.iter().map(|notice| self.folded(notice, ""));
        let mut folded: Vec<_> = folded.collect();
        let lines: usize = folded.iter().map(Vec::len).sum();
        if !self.layout.is_whole && lines > OF_NOTICES {
            let mut room = OF_NOTICES - 1;
            let fits = |notice: &&Vec<String>| {
                let is_fit = notice.len() <= room;
                room -= if is_fit { notice.len() } else { 0 };
                is_fit
            };
            let mut shown: Vec<_> = folded.iter().take_while(fits).cloned().collect();
            if let (true, Some(first)) = (shown.is_empty(), folded.first_mut()) {
                // One that is longer than all the room is cut.
                first.truncate(OF_NOTICES - 2);
                first.push("…".to_owned());
                shown.push(first.clone());
            }
            let left = notices.len() - shown.len();
            if left > 0 {
                let left = counted(left as u64, "more warning");
                shown.push(vec![format!("and {left}: -v tells all of it")]);
            }
            folded = shown;
        }
        let lines = folded.concat();
        self.push(Importance::Kept, Body::Lines(lines));
    }

    /// The parts that follow are worth so much.
    pub fn importance(&mut self, importance: Importance) {
        self.importance = importance;
    }

    /// An empty line, unless nothing stands above.
    pub fn gap(&mut self) {
        self.is_apart = true;
    }

    /// A sentence in lines that fit, each after `indent`.
    pub fn say(&mut self, text: &str, indent: &str) {
        let lines = self.folded(text, indent);
        self.push(self.importance, Body::Lines(lines));
    }

    /// Sentences, each in lines of its own.
    pub fn sentences(&mut self, sentences: &[String], indent: &str) {
        sentences.iter().for_each(|it| self.say(it, indent));
    }

    fn folded(&self, text: &str, indent: &str) -> Vec<String> {
        indented_within(text, indent, self.layout.columns.min(PROSE))
    }

    fn push(&mut self, importance: Importance, body: Body) {
        let is_apart = std::mem::take(&mut self.is_apart);
        self.parts.push(Part {
            importance,
            is_apart,
            body,
        });
    }

    /// A title and sentences under it.
    pub fn section(&mut self, title: &str, sentences: &[String]) {
        self.gap();
        let title = self.folded(title, "");
        let sentences = sentences.iter().map(|it| self.folded(it, "  "));
        let mut sentences: Vec<_> = sentences.collect();
        // No title without a sentence.
        match sentences.first_mut() {
            Some(first) => first.splice(..0, title).for_each(drop),
            None => sentences.push(title),
        }
        for lines in sentences {
            self.push(self.importance, Body::Lines(lines));
        }
    }

    /// Verdicts, of which so many are told as there is room for.
    pub fn verdicts(&mut self, verdicts: &[String]) {
        let entries = verdicts.iter().map(|it| self.folded(it, "  ")).collect();
        let importance = std::mem::replace(&mut self.importance, Importance::Account);
        self.list(List {
            head: "Verdicts".to_owned(),
            entries,
            left_out: 0,
            name: "verdict",
            advice: "-v tells all of it",
        });
        self.importance = importance;
    }

    /// A table, apart from what stands above.
    pub fn table(&mut self, table: Table) {
        self.gap();
        self.figures(table, "", false);
    }

    /// The same without notes, unless all is told.
    pub fn answer(&mut self, table: Table) {
        self.table(if self.layout.is_whole {
            table
        } else {
            table.without_notes()
        });
    }

    /// A table whose title stands above it.
    pub fn under(&mut self, table: Table, indent: &str) {
        self.figures(table, indent, true);
    }

    fn figures(&mut self, table: Table, indent: &str, is_under: bool) {
        let shown = ShownTable {
            table,
            indent: indent.to_owned(),
            columns: self.layout.columns.saturating_sub(indent.len()),
            is_under,
            left_out: 0,
            is_narrow: false,
        };
        self.push(self.importance, Body::Table(shown));
    }

    /// A list, apart from what stands above.
    pub fn list(&mut self, list: List) {
        self.gap();
        self.push(self.importance, Body::List(list));
    }

    /// Where and how it was measured: in a sentence unless all is told.
    pub fn conditions(&mut self, facts: &Table) {
        self.gap();
        if self.layout.is_whole {
            self.facts(facts);
            return;
        }
        for row in facts.rows.iter().filter(|row| WORTH.contains(&&*row[0])) {
            let lines = self.folded(&format!("{}: {}", row[0], row[1]), "");
            self.push(Importance::Account, Body::Lines(lines));
        }
        let brief = BRIEF.iter().filter_map(|name| {
            let row = facts.rows.iter().find(|row| row[0] == *name)?;
            Some(row[1].as_str())
        });
        let brief: Vec<_> = brief.collect();
        // A capture that others made does not say where.
        let is_placed = facts.rows.iter().any(|row| row[0] == BRIEF[0]);
        let begin = if is_placed { "On " } else { "method: " };
        let lines = self.folded(&format!("{begin}{}; -v tells more", brief.join("; ")), "");
        // Of several measurements those of the first.
        let importance = if !std::mem::replace(&mut self.says_more, true) {
            Importance::Kept
        } else {
            Importance::Detail
        };
        self.push(importance, Body::Lines(lines));
    }

    /// Names and facts, a line each.
    pub fn facts(&mut self, facts: &Table) {
        self.gap();
        for row in &facts.rows {
            let lines = self.fact(row);
            self.push(self.importance, Body::Lines(lines));
        }
    }

    /// A name and a fact, which may be long.
    fn fact(&self, row: &[String]) -> Vec<String> {
        let mut lines = self.folded(&row[1], &" ".repeat(NAMES));
        lines[0].replace_range(..NAMES, &format!("{:<NAMES$}", row[0]));
        lines
    }

    /// All of it, or what of it fits a screen.
    pub fn finish(mut self) -> String {
        if !self.layout.is_whole {
            self.shorten();
        }
        self.lines().join("\n") + "\n"
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut is_apart = false;
        for part in &self.parts {
            // What is left out leaves its gap to the next part.
            is_apart |= part.is_apart;
            let own = part.body.lines();
            if own.is_empty() {
                continue;
            }
            if std::mem::take(&mut is_apart) && lines.last().is_some_and(|it| !it.is_empty()) {
                lines.push(String::new());
            }
            lines.extend(own);
        }
        lines
    }

    /// Leaves out what is worth least until it fits a screen.
    fn shorten(&mut self) {
        if !self.says_more && self.beyond() > 0 {
            self.gap();
            self.push(
                Importance::Kept,
                Body::Lines(vec!["-v tells more".to_owned()]),
            );
        }
        for importance in [Importance::Detail, Importance::Account, Importance::Answer] {
            for step in [Step::Fewer, Step::Gone, Step::Least] {
                for at in (0..self.parts.len()).rev() {
                    if self.parts[at].importance != importance {
                        continue;
                    }
                    // The first answer is not left out, however long the rest is.
                    let is_first = !self.parts[..at]
                        .iter()
                        .any(|it| it.importance == importance);
                    let may_go = importance != Importance::Answer || !is_first;
                    if step == Step::Gone && !may_go {
                        continue;
                    }
                    loop {
                        match self.beyond() {
                            0 => return,
                            beyond if self.parts[at].body.shorten(step, beyond) => {}
                            _ => break,
                        }
                    }
                }
            }
        }
    }

    /// Lines that are too many for a screen.
    fn beyond(&self) -> usize {
        self.lines().len().saturating_sub(SCREEN)
    }
}

impl Body {
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Lines(lines) => lines.clone(),
            Self::Table(shown) => shown.lines(),
            Self::List(list) => list.lines(),
        }
    }

    /// Takes a step to fewer lines, of which `beyond` are too many. Says whether there was one.
    fn shorten(&mut self, step: Step, beyond: usize) -> bool {
        match (step, &mut *self) {
            (_, Self::Lines(lines)) if lines.is_empty() => false,
            (Step::Gone, Self::Lines(_) | Self::Table(_)) => {
                *self = Self::Lines(Vec::new());
                true
            }
            // It says how many entries are left out.
            (Step::Gone, Self::List(_)) | (_, Self::Lines(_)) => false,
            (Step::Fewer, Self::Table(shown)) => shown.shorten(beyond),
            (Step::Least, Self::Table(shown)) => shown.leave_out(beyond, 1),
            (Step::Fewer, Self::List(list)) => list.leave_out(beyond, FEW_ROWS),
            (Step::Least, Self::List(list)) => list.leave_out(beyond, 1),
        }
    }
}

impl ShownTable {
    fn lines(&self) -> Vec<String> {
        let mut lines = if self.is_narrow {
            self.table.first_lines_within(self.columns)
        } else {
            self.table.lines_within(self.columns)
        };
        if self.is_under {
            let title = indented_within(&self.table.title, "", self.columns.min(PROSE)).len();
            lines.drain(..title);
        }
        if self.left_out > 0 {
            let left = counted(self.left_out as u64, "more row");
            lines.push(format!("and {left}: -v tells all of it"));
        }
        for line in &mut lines {
            line.insert_str(0, &self.indent);
        }
        lines
    }

    /// Leaves out rows first, as many as stay readable, then columns, then the notes.
    fn shorten(&mut self, beyond: usize) -> bool {
        if self.leave_out(beyond, FEW_ROWS) {
            return true;
        }
        if self.blocks() > 1 {
            self.is_narrow = true;
            return true;
        }
        let notes = std::mem::take(&mut self.table.notes);
        !notes.is_empty()
    }

    /// Leaves out rows, but `least`; one line says how many.
    fn leave_out(&mut self, beyond: usize, least: usize) -> bool {
        let rows = self.table.rows.len();
        let said = usize::from(self.left_out == 0);
        let keep = rows.saturating_sub((beyond + said).div_ceil(self.blocks()));
        let left_out = rows.saturating_sub(keep.max(least));
        // It takes a line to leave out the first ones.
        let is_shorter = left_out * self.blocks() > said;
        if is_shorter {
            self.left_out += left_out;
            self.table.rows.truncate(rows - left_out);
        }
        is_shorter
    }

    /// How often the rows stand below each other.
    fn blocks(&self) -> usize {
        if self.is_narrow {
            1
        } else {
            self.table.blocks_within(self.columns)
        }
    }
}

impl List {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.head.clone()];
        lines.extend(self.entries.iter().flatten().cloned());
        if self.left_out > 0 {
            let left = counted(self.left_out as u64, self.name);
            lines.push(format!("and {left} more: {}", self.advice));
        }
        lines
    }

    /// Leaves out entries, but `least`; one line says how many.
    fn leave_out(&mut self, beyond: usize, least: usize) -> bool {
        let mut beyond = beyond + usize::from(self.left_out == 0);
        let before = self.entries.len();
        while self.entries.len() > least && beyond > 0 {
            let gone = self.entries.pop().map_or(0, |entry| entry.len());
            beyond = beyond.saturating_sub(gone);
        }
        self.left_out += before - self.entries.len();
        before > self.entries.len()
    }
}
