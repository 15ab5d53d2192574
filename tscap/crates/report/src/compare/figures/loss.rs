//! Loss against size and gap.

use super::{Figure, series, xs, ys};
use crate::compare::tables;
use crate::compare::words::interval_percent;
use tscap_document::Table;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_document::words::loss_percent;
use tscap_lab::compare::schema::{Comparison, LossPoint, Subject};

/// Where frames sent with no gap at all stand, as a gap, byte times: beside the
/// least gap of Ethernet, 12.
const FLAT_OUT: f64 = 1.0;

/// Loss against frame size and against gap (figure 6).
pub(crate) fn losses(comparison: &Comparison) -> Vec<Figure> {
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
        let has_bars = chart.series.iter().any(|series| series.name.is_empty());
        let bars = has_bars.then(|| "bars: 95 % of the mean of the rounds".to_owned());
        has_curve.then(|| Figure::new(chart, bars.into_iter().collect(), Some(table)))
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

/// A series for each stamp that has points, then a bar for each point with an interval. What
/// was not sent at the rate asked for is in none.
fn sweep(
    comparison: &Comparison,
    points: impl Fn(&Subject) -> &[LossPoint],
    x: impl Fn(&LossPoint) -> f64,
) -> Vec<Series> {
    let (mut curves, mut bars) = (Vec::new(), Vec::new());
    for subject in &comparison.subjects {
        let reached = points(subject).iter().filter(|point| point.is_reached());
        let mut reached: Vec<_> = reached.collect();
        reached.sort_by(|a, b| x(a).total_cmp(&x(b)));
        let curve = reached.iter().filter_map(|point| {
            let loss = loss_percent(point.lost, point.sent)?;
            Some((x(point), loss))
        });
        let curve = series(comparison, subject, Shape::Marked, curve.collect());
        let ends = reached.iter().filter_map(|point| {
            let [low, high] = interval_percent(point)?;
            Some([(x(point), low), (x(point), high), (f64::NAN, f64::NAN)])
        });
        let ends: Vec<_> = ends.flatten().collect();
        if !ends.is_empty() {
            bars.push(Series {
                name: String::new(),
                shape: Shape::Line,
                points: ends,
                ..curve
            });
        }
        if !curve.points.is_empty() {
            curves.push(curve);
        }
    }
    curves.into_iter().chain(bars).collect()
}
