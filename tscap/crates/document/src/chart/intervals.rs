//! Intervals about a value, a row each.

use maud::{Markup, html};

use super::plot::Plot;
use super::{Axis, STYLES, marker, width};

const ROW: f64 = 26.0;
/// Above and below the rows.
const EDGES: f64 = 84.0;

/// An interval about a value.
pub struct Interval {
    /// What stands left of the row.
    pub name: String,
    /// Colour and marker, from 0: after [`STYLES`] they begin anew.
    pub style: usize,
    /// What has a marker, in the axis's unit.
    pub value: f64,
    /// Lower and upper end of the line.
    pub interval: [f64; 2],
    /// A second value, which has a bar.
    pub bar: Option<f64>,
    /// What is shaded: the middle, and how far to either side.
    pub shaded: Option<(f64, f64)>,
}

/// Rows of intervals over an axis.
pub fn intervals(id: &str, title: &str, description: &str, x: &Axis, rows: &[Interval]) -> Markup {
    // A row is one high; the first one is at the top.
    let y = Axis::rows(rows.len());
    let names = rows.iter().map(|row| width(&row.name));
    let names = 16.0 + names.fold(0.0, f64::max);
    let plot = Plot::new(x, &y, names, EDGES + ROW * rows.len() as f64);
    plot.svg(
        id,
        title,
        description,
        &html! {
            (plot.horizontal(x))
            @for (row, middle) in rows.iter().zip((0..rows.len()).rev()) {
                (row.markup(&plot, middle as f64 + 0.5))
            }
        },
    )
}

impl Interval {
    /// Its row, `y` being the middle of it.
    fn markup(&self, plot: &Plot, y: f64) -> Markup {
        let place = |value: f64, y: f64| plot.place(value, y);
        let between = |low: f64, high: f64, half: f64| {
            let ((left, bottom), (right, top)) = (place(low, y - half)?, place(high, y + half)?);
            Some(format!(
                "M{left:.1} {bottom:.1}H{right:.1}V{top:.1}H{left:.1}z"
            ))
        };
        let [low, high] = self.interval;
        let ends = place(low, y).zip(place(high, y));
        html! {
            g class={ "series s" (self.style % STYLES) } {
                title { (self.name) }
                @if let Some(path) = self.shaded.and_then(|(middle, by)| between(middle - by, middle + by, 0.36)) {
                    path.band d=(path) {}
                }
                @if let Some(((left, y), (right, _))) = ends {
                    path.whisker d=(format!(
                        "M{left:.1} {y:.1}H{right:.1}M{left:.1} {:.1}v10M{right:.1} {:.1}v10",
                        y - 5.0, y - 5.0
                    )) {}
                }
                @if let Some((x, y)) = self.bar.and_then(|bar| place(bar, y)) {
                    path.whisker d=(format!("M{x:.1} {:.1}v16", y - 8.0)) {}
                }
                @if let Some((x, y)) = place(self.value, y) {
                    path.marker d=(marker::at(self.style, x, y)) {}
                }
                @if let Some((x, y)) = place(plot.x.low, y) {
                    text.left x=(format!("{:.1}", x - 8.0)) y=(format!("{:.1}", y + 4.0)) {
                        (self.name)
                    }
                }
            }
        }
    }
}
