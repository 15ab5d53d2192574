//! A figure of a page.

use maud::{Markup, html};

use super::chart::Chart;
use super::document::FIGURE_STYLE as STYLE;
use super::table::{Table, markup};

/// A chart with what to know to read it, and its table. It is drawn when it is shown.
pub struct Figure {
    id: String,
    /// As inline SVG, and what it shows as CSV.
    draw: Box<dyn Fn() -> (Markup, String)>,
    title: String,
    notes: Vec<String>,
    table: Option<Table>,
}

impl Figure {
    /// A chart with its notes and the table of what it shows.
    pub fn new(chart: Chart, notes: Vec<String>, table: Option<Table>) -> Self {
        Self {
            id: chart.id.clone(),
            title: chart.title.clone(),
            draw: Box::new(move || (chart.markup(), chart.csv())),
            notes,
            table,
        }
    }

    /// A drawing of another kind than [`Chart`], with what it shows as CSV.
    pub fn drawn(
        id: &str,
        title: String,
        notes: Vec<String>,
        draw: impl Fn() -> (Markup, String) + 'static,
    ) -> Self {
        Self {
            id: id.to_owned(),
            title,
            draw: Box::new(draw),
            notes,
            table: None,
        }
    }

    /// The same with a table of what it shows.
    pub fn beside(self, table: Table) -> Self {
        Self {
            table: Some(table),
            ..self
        }
    }

    /// Whether this is its title, of this pattern.
    pub fn is_titled(&self, title: &str, pattern: &str) -> bool {
        self.title
            .strip_prefix(title)
            .and_then(|rest| rest.strip_prefix(", "))
            .is_some_and(|of| of == pattern)
    }

    pub(super) fn markup(&self) -> Markup {
        let (chart, csv) = (self.draw)();
        html! {
            figure {
                figcaption { (self.title) }
                div.chart { (chart) }
                @for note in &self.notes {
                    p.note { (note) }
                }
                p.save {
                    "Save: "
                    a download={ "tscap-" (self.id) ".svg" }
                        href=(data_uri("image/svg+xml", &drawing(&chart))) { "drawing (SVG)" }
                    ", "
                    a download={ "tscap-" (self.id) ".csv" }
                        href=(data_uri("text/csv", &csv)) { "points (CSV)" }
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
}

/// A chart as a file of its own, with its colours.
fn drawing(chart: &Markup) -> String {
    let (tag, rest) = chart.0.split_once('>').unwrap_or((&chart.0, ""));
    let tag = tag.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{tag}><style>{STYLE}</style>{rest}")
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
