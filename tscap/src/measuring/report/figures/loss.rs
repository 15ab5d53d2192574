//! Loss against size and gap.

use super::{Figure, series, xs, ys};
use crate::measuring::compare::schema::{Comparison, LossPoint, Subject};
use crate::measuring::report::chart::{Axis, Chart, Scale, Series, Shape};
use crate::measuring::report::table::Table;
use crate::measuring::report::tables;
use crate::measuring::report::words::loss_percent;

/// Where frames sent with no gap at all stand, as a gap, byte times: beside the
/// least gap of Ethernet, 12.
const FLAT_OUT: f64 = 1.0;

/// Loss against frame size and against gap (figure 6).
pub(in crate::measuring::report) fn losses(comparison: &Comparison) -> Vec<Figure> {
    let by_size = sweep(
        comparison,
        |subject| &subject.loss_by_size,
        |point| f64::from(point.size),
    );
    let by_gap = sweep(
        comparison,
        |subject| &subject.loss_by_gap,
        |point| point.gap.map_or(FLAT_OUT, |gap| gap as f64),
    );
    let figure = |id: &str, title: &str, x: Axis, series: Vec<Series>, table: Table| {
        let chart = Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            description: "For each stamp the share of frames lost; the table below has each point."
                .to_owned(),
            x,
            y: Axis::over(
                "frames lost, %",
                Scale::Linear,
                ys(&series).chain([0.0, 0.1]),
            ),
            series,
            band: None,
        };
        let has_curve = chart.has_curve();
        has_curve.then(|| Figure::new(&chart, Vec::new(), Some(table)))
    };
    let size = (!by_size.is_empty()).then(|| {
        let x = Axis::over("frame size, B", Scale::Linear, xs(&by_size));
        let table = tables::loss_points(comparison, |subject| &subject.loss_by_size);
        figure("loss-size", "Loss against frame size", x, by_size, table)
    });
    let gap = (!by_gap.is_empty()).then(|| {
        let mut x = Axis::over("gap, byte times at 1 Gbit/s", Scale::Log, xs(&by_gap));
        x.named = Some((FLAT_OUT, "flat out"));
        let table = tables::loss_points(comparison, |subject| &subject.loss_by_gap);
        figure(
            "loss-gap",
            "Loss against the gap between frames",
            x,
            by_gap,
            table,
        )
    });
    size.into_iter().chain(gap).flatten().collect()
}

/// A series for each stamp that has points.
fn sweep(
    comparison: &Comparison,
    points: impl Fn(&Subject) -> &[LossPoint],
    x: impl Fn(&LossPoint) -> f64,
) -> Vec<Series> {
    let all = comparison.subjects.iter().map(|subject| {
        let points = points(subject).iter().filter_map(|point| {
            let loss = loss_percent(point.lost, point.sent)?;
            Some((x(point), loss))
        });
        let mut points: Vec<_> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series(comparison, subject, Shape::Marked, points)
    });
    all.filter(|series| !series.points.is_empty()).collect()
}
