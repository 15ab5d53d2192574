//! The area between two axes.

use maud::{Markup, html};

use super::Axis;

/// Width of every chart.
pub(super) const WIDTH: f64 = 640.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 34.0;
/// Height of a row of the legend.
pub(super) const LEGEND_ROW: f64 = 20.0;
const BOTTOM: f64 = 50.0;

/// Where values are drawn.
pub(super) struct Plot<'a> {
    pub x: &'a Axis,
    y: &'a Axis,
    /// Room at the left.
    left: f64,
    top: f64,
    height: f64,
}

impl<'a> Plot<'a> {
    pub fn new(x: &'a Axis, y: &'a Axis, left: f64, height: f64) -> Self {
        Self {
            x,
            y,
            left,
            top: TOP,
            height,
        }
    }

    /// The same with more rows of legend than one.
    pub fn below_legend(self, rows: f64) -> Self {
        let top = TOP + rows * LEGEND_ROW;
        Self { top, ..self }
    }

    pub fn svg(&self, id: &str, title: &str, description: &str, content: &Markup) -> Markup {
        html! {
            svg viewBox=(format!("0 0 {WIDTH} {}", self.height)) role="img"
                aria-labelledby={ (id) "-title " (id) "-description" } {
                title id={ (id) "-title" } { (title) }
                desc id={ (id) "-description" } { (description) }
                (content)
            }
        }
    }

    fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    pub fn across(&self, share: f64) -> f64 {
        self.left + share * (WIDTH - self.left - RIGHT)
    }

    fn up(&self, share: f64) -> f64 {
        self.bottom() - share * (self.bottom() - self.top)
    }

    /// Where a point is drawn, if the axes show it.
    pub fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let (x, y) = (self.x.place(x)?, self.y.place(y)?);
        Some((self.across(x), self.up(y)))
    }

    /// All of the width between two values of y.
    pub fn band(&self, low: f64, high: f64) -> Option<String> {
        let low = self.up(self.y.place(low)?);
        let high = self.up(self.y.place(high)?);
        let (left, right) = (self.across(0.0), self.across(1.0));
        Some(format!(
            "M{left:.1} {low:.1}H{right:.1}V{high:.1}H{left:.1}z"
        ))
    }

    /// The axis below, with its grid.
    pub fn horizontal(&self, axis: &Axis) -> Markup {
        let (top, bottom) = (self.top, self.bottom());
        html! {
            g.axis {
                @for (value, text) in axis.ticks() {
                    @if let Some(share) = axis.place(value) {
                        @let x = format!("{:.1}", self.across(share));
                        path.grid d=(format!("M{x} {top:.1}V{bottom:.1}")) {}
                        text.below x=(x) y=(format!("{:.1}", bottom + 17.0)) { (text) }
                    }
                }
                path.edge d=(format!("M{:.1} {bottom:.1}H{:.1}", self.across(0.0), self.across(1.0))) {}
                text.label.below x=(format!("{:.1}", self.across(0.5)))
                    y=(format!("{:.1}", self.height - 10.0)) { (axis.label) }
            }
        }
    }

    /// The axis at the left, with its grid.
    pub fn vertical(&self, axis: &Axis) -> Markup {
        let (left, right) = (self.across(0.0), self.across(1.0));
        let middle = self.up(0.5);
        html! {
            g.axis {
                @for (value, text) in axis.ticks() {
                    @if let Some(share) = axis.place(value) {
                        @let y = self.up(share);
                        path.grid d=(format!("M{left:.1} {y:.1}H{right:.1}")) {}
                        text.left x=(format!("{:.1}", left - 6.0)) y=(format!("{:.1}", y + 4.0)) {
                            (text)
                        }
                    }
                }
                text.label.below x="14" y=(format!("{middle:.1}"))
                    transform=(format!("rotate(-90 14 {middle:.1})")) { (axis.label) }
            }
        }
    }
}

/// A line through the places, broken where one is missing.
pub(super) fn line(places: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    joined(places, |x, y| format!("L{x:.1} {y:.1}"))
}

/// As a line, but level up to the next place.
pub(super) fn steps(places: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    joined(places, |x, y| format!("H{x:.1}V{y:.1}"))
}

fn joined(
    places: impl Iterator<Item = Option<(f64, f64)>>,
    next: impl Fn(f64, f64) -> String,
) -> String {
    let mut path = String::new();
    let mut is_broken = true;
    for place in places {
        if let Some((x, y)) = place {
            path.push_str(&if is_broken {
                format!("M{x:.1} {y:.1}")
            } else {
                next(x, y)
            });
        }
        is_broken = place.is_none();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_where_a_place_is_missing() {
        let places = [Some((0.0, 1.0)), Some((2.0, 3.0)), None, Some((4.0, 5.0))];
        assert_eq!(line(places.into_iter()), "M0.0 1.0L2.0 3.0M4.0 5.0");
        assert_eq!(steps(places.into_iter()), "M0.0 1.0H2.0V3.0M4.0 5.0");
    }
}
