//! Which figures are drawn in which chart.

mod cost;
mod density;
mod loss;
mod verdicts;

use maud::{Markup, html};

use super::chart::{Chart, Series, Shape};
use super::table::Table;
use super::words::stamp;
use crate::compare::schema::{Comparison, Subject};

pub(super) use cost::{autocorrelation, interrupts_off, tail};
pub(super) use density::{costs, inter_arrivals};
pub(super) use loss::losses;
pub(super) use verdicts::verdicts;

/// A chart with what to know to read it, and its table.
pub struct Figure {
    chart: Markup,
    title: String,
    notes: Vec<String>,
    table: Option<Table>,
}

impl Figure {
    /// A chart with its notes and the table of what it shows.
    pub fn new(chart: &Chart, notes: Vec<String>, table: Option<Table>) -> Self {
        Self {
            chart: chart.markup(),
            title: chart.title.clone(),
            notes,
            table,
        }
    }

    /// As HTML.
    pub fn markup(&self) -> Markup {
        html! {
            figure {
                figcaption { (self.title) }
                (self.chart)
                @for note in &self.notes {
                    p.note { (note) }
                }
                @if let Some(table) = &self.table {
                    details {
                        summary { "as a table" }
                        (table.markup())
                    }
                }
            }
        }
    }
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
