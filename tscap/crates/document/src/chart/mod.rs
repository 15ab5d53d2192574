//! Charts as SVG. Colours, dashes and fonts are in the page's style sheet, by the
//! classes `s0`, `s1`, …; dashes and markers tell series apart without colour.
//!
//! `plotters` was tried and not taken: its SVG has fixed colours and sizes as attributes,
//! without classes, so that it can't follow the page to a dark theme; its legend shows no
//! dashes and markers; it has no titles for screen readers; and a density took 27 kB
//! instead of 4 kB.

mod axis;
mod intervals;
mod lettering;
mod marker;
mod plot;

use maud::{Markup, html};

pub use axis::{Axis, Scale};
pub use intervals::{Interval, intervals};
pub use lettering::width;
use plot::{LEGEND_ROW, Plot, WIDTH};

/// Looks before they repeat.
pub const STYLES: usize = 6;
/// Height of a chart with one row of legend; its width is [`WIDTH`]. Units of its own.
const HEIGHT: f64 = 330.0;
/// Of an entry in the legend, before its name and after it.
const SAMPLE: f64 = 40.0;
const BETWEEN: f64 = 14.0;
/// Room for the figures at the left.
const LEFT: f64 = 74.0;

/// A chart of several series over two axes.
pub struct Chart {
    /// Of the page's figures, one only.
    pub id: String,
    /// Above the chart.
    pub title: String,
    /// What is to be seen, for who can't see it.
    pub description: String,
    /// Below.
    pub x: Axis,
    /// At the left.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Shaded between less and plus this.
    pub band: Option<f64>,
}

/// One series.
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Its look: those of the same stamp are alike in all charts.
    pub style: usize,
    /// How its points are drawn.
    pub shape: Shape,
    /// Those that an axis can't show are left out.
    pub points: Vec<(f64, f64)>,
}

/// How its points are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Each value holds up to the next point.
    Steps,
    /// A line with a marker at each point.
    Marked,
    /// A line.
    Line,
    /// A dot at each point.
    Dots,
    /// A marker at each point.
    Markers,
    /// Shaded, with the points around it; without a name it is not in the legend.
    Area,
}

impl Chart {
    /// As inline SVG.
    pub fn markup(&self) -> Markup {
        let entries = self.entries();
        let rows = entries.last().map_or(0.0, |(_, (_, row))| *row);
        let height = HEIGHT + rows * LEGEND_ROW;
        let plot = Plot::new(&self.x, &self.y, LEFT, height).below_legend(rows);
        let band = self.band.and_then(|band| plot.band(-band, band));
        plot.svg(
            &self.id,
            &self.title,
            &self.description,
            &html! {
                @if let Some(path) = band {
                    path.band d=(path) {}
                }
                // Shaded areas would hide the grid.
                @for area in self.series.iter().filter(|it| it.shape == Shape::Area) {
                    (area.markup(&plot))
                }
                (plot.horizontal(&self.x))
                (plot.vertical(&self.y))
                @for series in self.series.iter().filter(|it| it.shape != Shape::Area) {
                    (series.markup(&plot))
                }
                (legend(&entries))
            },
        )
    }

    /// The series of the legend, each with its place: x, and its row.
    fn entries(&self) -> Vec<(&Series, (f64, f64))> {
        let (mut x, mut row) = (LEFT, 0.0);
        let named = self.series.iter().filter(|series| !series.name.is_empty());
        named
            .map(|series| {
                let entry = SAMPLE + width(&series.name) + BETWEEN;
                if x + entry > WIDTH && x > LEFT {
                    (x, row) = (LEFT, row + 1.0);
                }
                let place = (x, row);
                x += entry;
                (series, place)
            })
            .collect()
    }

    /// Whether there is more to see than one point of each series.
    pub fn has_curve(&self) -> bool {
        let curves = self.series.iter().map(|series| {
            let mut xs: Vec<f64> = series
                .points
                .iter()
                .filter(|(x, y)| self.x.place(*x).is_some() && self.y.place(*y).is_some())
                .map(|(x, _)| *x)
                .collect();
            xs.dedup();
            xs.len()
        });
        curves.max().unwrap_or(0) > 1
    }

    /// The points of all series with a name, a line each.
    pub fn csv(&self) -> String {
        let head = ["series", &self.x.label, &self.y.label].map(quoted);
        let points = self
            .series
            .iter()
            .filter(|series| !series.name.is_empty())
            .flat_map(|series| {
                let points = series.points.iter().filter(|(x, _)| x.is_finite());
                points.map(|(x, y)| format!("{},{x},{y}\n", quoted(&series.name)))
            });
        let points: String = points.collect();
        format!("{}\n{points}", head.join(","))
    }
}

/// A field of CSV (RFC 4180).
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A dot at each place: a line without length, whose ends are round.
fn dots(places: impl Iterator<Item = (f64, f64)>) -> String {
    places.map(|(x, y)| format!("M{x:.1} {y:.1}h0")).collect()
}

fn legend(entries: &[(&Series, (f64, f64))]) -> Markup {
    html! {
        @for (series, (x, row)) in entries {
            @let y = 16.0 + row * LEGEND_ROW;
            g class={ "entry s" (series.style % STYLES) } {
                @match series.shape {
                    Shape::Dots => path.dots d=(dots([(x + 11.0, y), (x + 17.0, y), (x + 23.0, y)].into_iter())) {},
                    Shape::Markers => {},
                    _ => path.line d=(format!("M{x:.1} {y:.1}h34")) {},
                }
                @if matches!(series.shape, Shape::Marked | Shape::Markers) {
                    path.marker d=(marker::at(series.style, x + 17.0, y)) {}
                }
                text x=(format!("{:.1}", x + SAMPLE)) y=(format!("{:.1}", y + 4.0)) {
                    (series.name)
                }
            }
        }
    }
}

impl Series {
    fn markup(&self, plot: &Plot) -> Markup {
        let places = self.points.iter().map(|&(x, y)| plot.place(x, y));
        let line = match self.shape {
            Shape::Steps => Some(plot::steps(places.clone())),
            Shape::Marked | Shape::Line => Some(plot::line(places.clone())),
            Shape::Dots | Shape::Markers => None,
            Shape::Area => {
                return html! { path.band d=(plot::line(places) + "z") {} };
            }
        };
        html! {
            g class={ "series s" (self.style % STYLES) } {
                title { (self.name) }
                @if let Some(line) = line {
                    path.line d=(line) {}
                }
                @match self.shape {
                    Shape::Dots => path.dots d=(dots(places.flatten())) {},
                    Shape::Marked | Shape::Markers => {
                        path.marker d=(marker::all(self.style, places.flatten())) {}
                    },
                    _ => {},
                }
            }
        }
    }
}
