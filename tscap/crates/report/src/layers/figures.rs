//! The picture of residences.

use crate::chart::{Axis, Chart, STYLES, Scale, Series, Shape};
use crate::figure::Figure;
use crate::words::Unit;
use tscap_flows::layers::schema::FlowResidences;

/// The share of packets that were no longer between two layers.
pub(super) fn residences(all: &FlowResidences) -> Option<Figure> {
    let bins = || all.residences.iter().flat_map(|it| &it.histogram);
    let unit = Unit::of(bins().map(|bin| bin.to_ns).max()? as f64);
    let series = all.residences.iter().enumerate().map(|(style, it)| {
        let n: u64 = it.histogram.iter().map(|bin| bin.n).sum();
        let mut before = 0;
        let points = it.histogram.iter().map(|bin| {
            before += bin.n;
            (
                bin.to_ns.max(1) as f64 / unit.ns,
                100.0 * before as f64 / n as f64,
            )
        });
        Series {
            name: format!("{} → {}", it.from, it.to),
            style: style % STYLES,
            shape: Shape::Steps,
            points: points.collect(),
        }
    });
    let ends = bins().map(|bin| bin.to_ns.max(1) as f64 / unit.ns);
    let chart = Chart {
        id: "residence".to_owned(),
        title: "Residence between layers".to_owned(),
        description: "The share of all packets that were no longer between two layers.".to_owned(),
        x: Axis::over(format!("residence, {}", unit.name), Scale::Log, ends),
        y: Axis::over("no longer, %", Scale::Linear, [0.0, 100.0]),
        series: series.collect(),
        band: None,
    };
    let note = "ranges at most 1/16 of their values wide".to_owned();
    chart
        .has_curve()
        .then(|| Figure::new(&chart, vec![note], None))
}
