//! Pictures of the flows that come first.

use super::lines::name;
use tscap_document::chart::{Axis, Chart, STYLES, Scale, Series, Shape};
use tscap_document::words::Unit;
use tscap_document::{Figure, Shares};
use tscap_flows::schema::{FlowReport, Interval};

/// Packets and gaps over time, and how often each gap is.
pub(super) fn all(flows: &[FlowReport]) -> Vec<Figure> {
    let packets = |it: &Interval| it.packets as f64;
    let gaps = |it: &Interval| it.longest_ns;
    let pictures = [
        over_time(flows, "packets", "Packets of each interval", packets, false),
        over_time(flows, "gaps", "Longest gap of each interval", gaps, true),
        histograms(flows),
    ];
    pictures.into_iter().flatten().collect()
}

fn over_time(
    flows: &[FlowReport],
    id: &str,
    title: &str,
    value: impl Fn(&Interval) -> f64,
    is_time: bool,
) -> Option<Figure> {
    let all = flows.iter().flat_map(|flow| &flow.series);
    let greatest = all.map(&value).fold(0.0, f64::max);
    let unit = is_time.then(|| Unit::of(greatest));
    let scale = unit.as_ref().map_or(1.0, |unit| unit.ns);
    let series = flows.iter().enumerate().map(|(style, flow)| Series {
        name: name(flow),
        style: style % STYLES,
        shape: Shape::Line,
        points: points(flow, |it| value(it) / scale),
    });
    let series: Vec<_> = series.collect();
    let label = match &unit {
        Some(unit) => format!("gap, {}", unit.name),
        None => "packets".to_owned(),
    };
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let points = series.iter().flat_map(|it| &it.points);
        points.map(of).chain([0.0])
    };
    let chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!("{title}, for each flow."),
        x: Axis::over("time, s", Scale::Linear, ends(|it| it.0)),
        y: Axis::over(label, Scale::Linear, ends(|it| it.1)),
        band: None,
        series,
    };
    chart
        .has_curve()
        .then(|| Figure::new(chart, Vec::new(), None))
}

fn points(flow: &FlowReport, value: impl Fn(&Interval) -> f64) -> Vec<(f64, f64)> {
    flow.series.iter().map(|it| (it.at_s, value(it))).collect()
}

fn histograms(flows: &[FlowReport]) -> Option<Figure> {
    let of = flows.iter().map(|flow| (name(flow), &flow.histogram[..]));
    Shares {
        id: "distribution",
        title: "Inter-arrival times",
        description: "The share of the gaps of each flow that are no longer.",
        values: "gap",
        of: of.collect(),
    }
    .figure()
}
