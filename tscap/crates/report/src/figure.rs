//! A figure of a page.

use maud::{Markup, html};

use super::chart::Chart;
use super::document::FIGURE_STYLE as STYLE;
use super::table::{Table, markup};

/// A chart with what to know to read it, and its table.
pub struct Figure {
    id: String,
    chart: Markup,
    csv: String,
    title: String,
    notes: Vec<String>,
    table: Option<Table>,
}

impl Figure {
    /// A chart with its notes and the table of what it shows.
    pub fn new(chart: &Chart, notes: Vec<String>, table: Option<Table>) -> Self {
        Self {
            id: chart.id.clone(),
            chart: chart.markup(),
            csv: chart.csv(),
            title: chart.title.clone(),
            notes,
            table,
        }
    }

    /// A drawing of another kind than [`Chart`], with what it shows as CSV.
    pub(super) fn drawn(
        id: &str,
        title: String,
        chart: Markup,
        csv: String,
        notes: Vec<String>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            chart,
            csv,
            title,
            notes,
            table: None,
        }
    }

    /// The same with a table of what it shows.
    pub(super) fn beside(self, table: Table) -> Self {
        Self {
            table: Some(table),
            ..self
        }
    }

    /// Whether this is its title, of this pattern.
    pub(super) fn is_titled(&self, title: &str, pattern: &str) -> bool {
        self.title
            .strip_prefix(title)
            .and_then(|rest| rest.strip_prefix(", "))
            .is_some_and(|of| of == pattern)
    }

    pub(super) fn markup(&self) -> Markup {
        html! {
            figure {
                figcaption { (self.title) }
                div.chart { (self.chart) }
                @for note in &self.notes {
                    p.note { (note) }
                }
                p.save {
                    "Save: "
                    a download={ "tscap-" (self.id) ".svg" }
                        href=(data_uri("image/svg+xml", &self.drawing())) { "drawing (SVG)" }
                    ", "
                    a download={ "tscap-" (self.id) ".csv" }
                        href=(data_uri("text/csv", &self.csv)) { "points (CSV)" }
                }
                @if let Some(table) = &self.table {
                    details {
                        summary { "as a table" }
                        (markup(table))
                    }
                }
            }
        }
    }

    /// The chart as a file of its own, with its colours.
    fn drawing(&self) -> String {
        let chart = &self.chart.0;
        let (tag, rest) = chart.split_once('>').unwrap_or((chart, ""));
        let tag = tag.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
        format!("{tag}><style>{STYLE}</style>{rest}")
    }
}

/// What a link to `text` itself is to say (RFC 2397).
fn data_uri(kind: &str, text: &str) -> String {
    let mut uri = format!("data:{kind};charset=utf-8,");
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b',' | b'(' | b')' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
