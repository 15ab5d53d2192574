//! Which figures are drawn in which chart.

mod cost;
mod density;
mod loss;
mod verdicts;

use maud::{Markup, html};

use super::chart::{Chart, Series, Shape};
use super::document::FIGURE_STYLE as STYLE;
use super::table::Table;
use super::words::stamp;
use tscap_lab::compare::schema::{Comparison, Subject};

pub(super) use cost::{autocorrelation, interrupts_off, tail, tails_of};
pub(super) use density::{costs, inter_arrivals, pattern_costs};
pub(super) use loss::losses;
pub(super) use verdicts::{of_intervals, verdicts};

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

    /// Whether this is its title, of this pattern.
    pub(super) fn is_titled(&self, title: &str, pattern: &str) -> bool {
        self.title
            .strip_prefix(title)
            .and_then(|rest| rest.strip_prefix(", "))
            .is_some_and(|of| of == pattern)
    }

    /// As HTML.
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
                        (crate::table::markup(table))
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

/// A stamp's series, in its look.
fn series(
    comparison: &Comparison,
    subject: &Subject,
    shape: Shape,
    points: Vec<(f64, f64)>,
) -> Series {
    let mut subjects = comparison.subjects.iter();
    Series {
        name: stamp(subject.source, &subject.path).to_owned(),
        style: subjects
            .position(|other| std::ptr::eq(other, subject))
            .unwrap_or(0),
        shape,
        points,
    }
}

fn xs(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|series| series.points.iter().map(|(x, _)| *x))
}

fn ys(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|series| series.points.iter().map(|(_, y)| *y))
}
