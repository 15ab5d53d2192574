//! A result as people read it: one value, told as text on a terminal and as a page in a browser.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::facts::mitigations;
use super::figure::Figure;
use super::layout::{Importance, Layout, List, TextWriter};
use super::table::{Table, markup};
use super::words::command;
use tscap_results::envelope::Envelope;
use tscap_results::machine::Machine;

const STYLE: &str = include_str!("style.css");
/// Colours, dashes and letters of the charts.
pub(super) const FIGURE_STYLE: &str = include_str!("figure.css");
/// Where a curve would have one point.
pub const FEW_POINTS: &str = "no curves: one size and one pace were measured, which the table has; without --quick there are \
     more";
/// Should anything ever slip in: nothing is fetched, nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A word and what it means.
pub type Word = (&'static str, &'static str);

/// Words that a reader may not know, in groups.
pub type Words = &'static [&'static [Word]];

/// A result, part by part.
pub struct Document {
    title: String,
    /// Stands above the page.
    heading: &'static str,
    /// Of the sections that come.
    importance: Importance,
    sections: Vec<(Shown, Importance, Section)>,
}

/// Where a section is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// In every text, and on the page.
    Everywhere,
    /// In the brief and in the whole text, not on the page.
    Text,
    /// In the brief text.
    Brief,
    /// In the whole text.
    Whole,
    /// In the whole text, and on the page.
    Further,
    /// On the page, in no text.
    Page,
}

impl Shown {
    fn is_in_text(self, is_whole: bool) -> bool {
        match self {
            Self::Everywhere | Self::Text => true,
            Self::Brief => !is_whole,
            Self::Whole | Self::Further => is_whole,
            Self::Page => false,
        }
    }

    fn is_on_page(self) -> bool {
        matches!(self, Self::Everywhere | Self::Further | Self::Page)
    }
}

/// How far what stands under a title is indented in a text.
pub type Indent = &'static str;

/// Not at all.
pub const FLUSH: Indent = "";
/// As usual.
pub const INDENTED: Indent = "  ";

/// A part of a document. Figures, and what is said of them, are in no text.
pub enum Section {
    /// What must be known before any figure.
    Notices(Vec<String>),
    /// Stands above what comes next.
    Title(String),
    /// The same below a title.
    Subtitle(String),
    /// An empty line of a text, unless one stands above.
    Gap,
    /// A title, and sentences under it.
    Titled(String, Vec<String>),
    /// Verdicts: the brief text has as many as there is room for.
    Verdicts(Vec<String>),
    /// Sentences, of which each stands alone.
    Sentences(Indent, Vec<String>),
    /// A sentence, as a paragraph of the page.
    Paragraph(String),
    /// A sentence in small letters.
    Remark(String),
    /// Entries of a text, as many as there is room for.
    List(List),
    /// A table, apart from what stands above.
    Table(Table),
    /// The same, without its notes in the brief text.
    Answer(Table),
    /// A table whose title stands above it.
    Under(Indent, Table),
    /// A table that the page shows when its name is chosen.
    Folded(&'static str, Table),
    /// Figures, and sentences beside them.
    Figures(Vec<String>, Vec<Figure>),
    /// Names and facts, all of them in the brief text too.
    Facts(Table),
    /// Where and how it was measured: in the brief text a sentence.
    Conditions(Table, Option<Table>),
    /// What was measured, by which command.
    Ran {
        /// Which of several it is.
        name: Option<String>,
        /// The machine that was measured.
        machine: String,
        /// The command, as a shell takes it.
        command: String,
    },
    /// What words mean.
    Words(Words),
}

impl Section {
    /// Of figures alone.
    pub fn figures(figures: impl IntoIterator<Item = Figure>) -> Self {
        Self::Figures(Vec::new(), figures.into_iter().collect())
    }

    /// What was measured, with its name if there are several.
    pub fn ran(name: Option<String>, about: &Envelope) -> Self {
        Self::Ran {
            name,
            machine: about.measured_machine(),
            command: command(&about.command),
        }
    }

    /// Where and how it was measured.
    pub fn conditions(facts: Table, machine: &Machine) -> Self {
        Self::Conditions(facts, mitigations(machine).if_any())
    }

    fn tell(&self, writer: &mut TextWriter) {
        match self {
            Self::Notices(notices) => writer.notices(notices),
            Self::Title(title) | Self::Subtitle(title) => {
                writer.gap();
                writer.say(title, FLUSH);
            }
            Self::Gap => writer.gap(),
            Self::Titled(title, sentences) => writer.section(title, sentences),
            Self::Verdicts(verdicts) => writer.verdicts(verdicts),
            Self::Sentences(indent, sentences) => writer.sentences(sentences, indent),
            Self::Paragraph(sentence) | Self::Remark(sentence) => writer.say(sentence, FLUSH),
            Self::List(list) => writer.list(list.clone()),
            Self::Table(table) | Self::Folded(_, table) => writer.table(table.clone()),
            Self::Answer(table) => writer.answer(table.clone()),
            Self::Under(indent, table) => writer.under(table.clone(), indent),
            Self::Facts(facts) => writer.facts(facts),
            Self::Conditions(facts, _) => writer.conditions(facts),
            Self::Figures(..) | Self::Ran { .. } | Self::Words(_) => {}
        }
    }

    fn markup(&self) -> Markup {
        html! {
            @match self {
                Self::Notices(notices) => {
                    @if !notices.is_empty() {
                        ul.notices {
                            @for notice in notices {
                                li { (notice) }
                            }
                        }
                    }
                }
                Self::Title(title) => h2 { (title) },
                Self::Subtitle(title) => h3 { (title) },
                Self::Gap | Self::List(_) => {},
                Self::Titled(title, sentences) => {
                    h2 { (title) }
                    (list(sentences))
                }
                Self::Sentences(_, sentences) | Self::Verdicts(sentences) => (list(sentences)),
                Self::Paragraph(sentence) => p { (sentence) },
                Self::Remark(sentence) => p.note { (sentence) },
                Self::Table(table) | Self::Answer(table) | Self::Under(_, table) => (markup(table)),
                Self::Folded(name, table) => {
                    details {
                        summary { (name) }
                        (markup(table))
                    }
                }
                Self::Figures(sentences, figures) => {
                    div.figures {
                        @if !sentences.is_empty() { (list(sentences)) }
                        @for figure in figures {
                            (figure.markup())
                        }
                    }
                }
                Self::Facts(facts) => div.facts { (markup(facts)) },
                Self::Conditions(facts, mitigations) => {
                    div.facts {
                        (markup(facts))
                        @if let Some(mitigations) = mitigations {
                            (markup(mitigations))
                        }
                    }
                }
                Self::Ran { name, machine, command } => {
                    p {
                        @if let Some(name) = name {
                            b { (name) } ": "
                        }
                        (machine) "; " code { (command) }
                    }
                }
                Self::Words(words) => {
                    h2 { "Words" }
                    dl {
                        @for (word, meaning) in words.iter().copied().flatten() {
                            dt { (word) }
                            dd { (meaning) }
                        }
                    }
                }
            }
        }
    }
}

/// What must be known before any figure: warnings, and after how much a measurement ended early.
pub fn notices(about: &Envelope, warnings: &[String], so_far: String) -> Vec<String> {
    let partial = format!("partial: ended early, after {so_far}");
    let partial = about.partial.then_some(partial);
    warnings.iter().cloned().chain(partial).collect()
}

fn list(sentences: &[String]) -> Markup {
    html! {
        ul {
            @for sentence in sentences {
                li { (sentence) }
            }
        }
    }
}

impl Document {
    /// A document that has no sections yet.
    pub fn new(title: impl Into<String>, heading: &'static str) -> Self {
        Self {
            title: title.into(),
            heading,
            importance: Importance::Answer,
            sections: Vec::new(),
        }
    }

    /// Of the only result that is told: it begins with the machine and the command, and what must
    /// be known before any figure.
    pub fn of(
        title: impl Into<String>,
        heading: &'static str,
        about: &Envelope,
        notices: Vec<String>,
    ) -> Self {
        let mut document = Self::new(title, heading);
        document.add(Shown::Page, Section::ran(None, about));
        document.add(Shown::Everywhere, Section::Notices(notices));
        document
    }

    /// The sections that follow are worth so much, where a text must fit a screen.
    pub fn importance(&mut self, importance: Importance) {
        self.importance = importance;
    }

    /// Behind the others.
    pub fn add(&mut self, shown: Shown, section: Section) {
        self.sections.push((shown, self.importance, section));
    }

    /// All of them, behind the others.
    pub fn add_all(&mut self, shown: Shown, sections: impl IntoIterator<Item = Section>) {
        let sections = sections.into_iter();
        sections.for_each(|section| self.add(shown, section));
    }

    /// A title, which the page alone has.
    pub fn page_title(&mut self, title: impl Into<String>) {
        self.add(Shown::Page, Section::Title(title.into()));
    }

    /// Where and how it was measured.
    pub fn conditions(&mut self, facts: Table, machine: &Machine) {
        self.page_title("Where and how");
        self.add(Shown::Everywhere, Section::conditions(facts, machine));
    }

    /// As text.
    pub fn text(&self, layout: Layout) -> String {
        let mut writer = TextWriter::new(layout);
        let sections = self.sections.iter();
        sections
            .filter(|(shown, ..)| shown.is_in_text(layout.is_whole))
            .for_each(|(_, importance, section)| {
                writer.importance(*importance);
                section.tell(&mut writer);
            });
        writer.finish()
    }

    /// As one HTML page, with figures, that asks for nothing from elsewhere.
    pub fn page(&self) -> String {
        let sections = self.sections.iter();
        let sections = sections.filter(|(shown, ..)| shown.is_on_page());
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(FIGURE_STYLE)) (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (self.heading) }
                    @for (.., section) in sections {
                        (section.markup())
                    }
                }
            }
        };
        page.into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_where_it_is_to_be_shown() {
        let mut document = Document::new("title", "heading");
        let all = [
            Shown::Everywhere,
            Shown::Text,
            Shown::Brief,
            Shown::Whole,
            Shown::Further,
            Shown::Page,
        ];
        for shown in all {
            let name = format!("{shown:?}");
            document.add(shown, Section::Titled(name.clone(), vec![name]));
        }
        let brief = document.text(Layout::BRIEF);
        assert_eq!(
            brief,
            "Everywhere\n  Everywhere\n\nText\n  Text\n\nBrief\n  Brief\n"
        );
        let whole = document.text(Layout::WHOLE);
        let titles: Vec<_> = whole.split("\n\n").map(|it| it.lines().next()).collect();
        let titles: Vec<_> = titles.into_iter().flatten().collect();
        assert_eq!(titles, ["Everywhere", "Text", "Whole", "Further"]);
        let page = document.page();
        let titles = page.split("<h2>").skip(1);
        let titles: Vec<_> = titles.filter_map(|it| it.split('<').next()).collect();
        assert_eq!(titles, ["Everywhere", "Further", "Page"]);
        assert!(page.contains("<title>title</title>") && page.contains("<h1>heading</h1>"));
    }
}
