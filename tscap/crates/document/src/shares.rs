//! The picture of how many values are no greater.

use super::chart::{Axis, Chart, STYLES, Scale, Series, Shape};
use super::figure::Figure;
use super::words::Unit;
use tscap_statistics::Bin;

/// What is shown.
pub struct Shares<'a> {
    /// Of the drawing in the page; its files are named by it.
    pub id: &'static str,
    /// Stands above the drawing.
    pub title: &'static str,
    /// What is drawn, for those who can't see it.
    pub description: &'static str,
    /// What the values are called on their axis.
    pub values: &'static str,
    /// Each by its name.
    pub of: Vec<(String, &'a [Bin])>,
}

impl Shares<'_> {
    /// `None` if there is no curve.
    pub fn figure(self) -> Option<Figure> {
        let bins = || self.of.iter().flat_map(|(_, bins)| *bins);
        let unit = Unit::of(bins().map(|bin| bin.to_ns).max()? as f64);
        // On a logarithmic axis there is no 0.
        let end = |bin: &Bin| bin.to_ns.max(1) as f64 / unit.ns;
        let series = self.of.iter().enumerate().map(|(style, (name, bins))| {
            let n: u64 = bins.iter().map(|bin| bin.n).sum();
            let mut before = 0;
            let points = bins.iter().map(|bin| {
                before += bin.n;
                (end(bin), 100.0 * before as f64 / n as f64)
            });
            Series {
                name: name.clone(),
                style: style % STYLES,
                shape: Shape::Steps,
                points: points.collect(),
            }
        });
        let chart = Chart {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            description: self.description.to_owned(),
            x: Axis::over(
                format!("{}, {}", self.values, unit.name),
                Scale::Log,
                bins().map(end),
            ),
            y: Axis::over("no longer, %", Scale::Linear, [0.0, 100.0]),
            series: series.collect(),
            band: None,
        };
        let note = "ranges at most 1/16 of their values wide".to_owned();
        chart
            .has_curve()
            .then(|| Figure::new(chart, vec![note], None))
    }
}
