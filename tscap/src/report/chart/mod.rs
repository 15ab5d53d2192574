//! Charts as SVG. Colours, dashes and fonts are in the page's style sheet, by the
//! classes `s0`, `s1`, …; dashes and markers tell series apart without colour.

mod axis;
mod intervals;
mod marker;
mod plot;

use maud::{Markup, html};

pub use axis::{Axis, Scale};
pub(super) use intervals::{Interval, intervals};
use plot::Plot;

/// Looks before they repeat.
pub(super) const STYLES: usize = 6;
/// Height of a chart; its width is [`plot::WIDTH`]. Units of its own.
const HEIGHT: f64 = 330.0;
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
    /// Shaded, with the points around it; without a name it is not in the legend.
    Area,
}

impl Chart {
    /// As inline SVG.
    pub fn markup(&self) -> Markup {
        let plot = Plot::new(&self.x, &self.y, LEFT, HEIGHT);
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
                (self.legend(&plot))
            },
        )
    }

    fn legend(&self, plot: &Plot) -> Markup {
        let named = self.series.iter().filter(|series| !series.name.is_empty());
        html! {
            @for (index, series) in named.enumerate() {
                @let (x, y) = plot.legend(index);
                g class={ "s" (series.style % STYLES) } {
                    path.line d=(format!("M{x:.1} {y:.1}h34")) {}
                    @if series.shape == Shape::Marked {
                        path.marker d=(marker::at(series.style, x + 17.0, y)) {}
                    }
                    text x=(format!("{:.1}", x + 40.0)) y=(format!("{:.1}", y + 4.0)) {
                        (series.name)
                    }
                }
            }
        }
    }
}

impl Series {
    fn markup(&self, plot: &Plot) -> Markup {
        let places = self.points.iter().map(|&(x, y)| plot.place(x, y));
        let line = match self.shape {
            Shape::Steps => plot::steps(places.clone()),
            Shape::Marked | Shape::Line => plot::line(places.clone()),
            Shape::Area => {
                return html! { path.band d=(plot::line(places) + "z") {} };
            }
        };
        html! {
            g class={ "series s" (self.style % STYLES) } {
                title { (self.name) }
                path.line d=(line) {}
                @if self.shape == Shape::Marked {
                    path.marker d=(marker::all(self.style, places.flatten())) {}
                }
            }
        }
    }
}
