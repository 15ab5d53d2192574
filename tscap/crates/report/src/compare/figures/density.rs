//! Densities of costs and inter-arrival times.

use super::{Figure, ys};
use crate::compare::tables;
use crate::compare::words::stamp;
use tscap_document::Histogram;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_document::words::{Unit, number};
use tscap_lab::compare::schema::{Comparison, Precision, Subject};

/// Density of the cost per frame.
pub(crate) fn costs(comparison: &Comparison) -> Option<Figure> {
    let histograms = histograms(comparison, |subject| {
        let frame = subject.frame.as_ref()?;
        let histogram = Histogram::new(&frame.histogram, frame.bucket_ns)?;
        Some(histogram.in_steps(comparison.method.checkpoint.resolution_ns))
    });
    let title = "Density of the cost of a stamp, frames 20 µs apart".to_owned();
    density("cost", title, "cost per frame", &histograms)
}

/// Density of the cost on each pattern (figures 2 and 4 of the paper).
pub(crate) fn pattern_costs(comparison: &Comparison) -> Vec<Figure> {
    let each = tables::patterns(comparison).into_iter().enumerate();
    let figures = each.filter_map(|(index, pattern)| {
        let histograms = precise(comparison, pattern, |of| {
            let histogram = Histogram::new(&of.cost_histogram, of.cost_bucket_ns)?;
            Some(histogram.in_steps(comparison.method.checkpoint.resolution_ns))
        });
        let title = format!("Density of the cost of a stamp, {pattern}");
        density(
            &format!("cost-{index}"),
            title,
            "cost per frame",
            &histograms,
        )
    });
    figures.collect()
}

/// Density of inter-arrival times (figures 3 and 5).
pub(crate) fn inter_arrivals(comparison: &Comparison) -> Vec<Figure> {
    let each = tables::patterns(comparison).into_iter().enumerate();
    let figures = each.filter_map(|(index, pattern)| {
        let histograms = precise(comparison, pattern, |of| {
            Histogram::new(&of.inter_arrival, of.bucket_ns)
        });
        let title = format!("Density of inter-arrival times, {pattern}");
        let id = format!("inter-arrival-{index}");
        let what = "inter-arrival time";
        density(&id, title, what, &histograms)
    });
    figures.collect()
}

/// Histograms of all stamps in one chart; `None` of none.
fn density(id: &str, title: String, what: &str, histograms: &[Named]) -> Option<Figure> {
    if histograms.is_empty() {
        return None;
    }
    let ends = histograms.iter().flat_map(|of| of.histogram.main_part());
    let shown = Axis::over("", Scale::Linear, ends);
    let (low, high) = (shown.low, shown.high);
    // Where the values hardly differ, their differences are the figures.
    let middle = (low + high) / 2.0;
    let origin = if high - low < middle {
        shown.round(middle)
    } else {
        0.0
    };
    let unit = Unit::of((high - origin).max(origin - low));
    let drawn = histograms.iter().map(|of| {
        let density = of.histogram.density(low, high).into_iter();
        let points =
            density.map(|(value, share)| ((value - origin) / unit.ns, 100.0 * share * unit.ns));
        Series {
            name: of.stamp.to_owned(),
            style: of.style,
            shape: Shape::Steps,
            points: points.collect(),
        }
    });
    let drawn: Vec<Series> = drawn.collect();
    let beyond = histograms.iter().map(|of| {
        let outside = 100.0 * of.histogram.outside(low, high);
        format!("{} {} %", of.stamp, number(outside))
    });
    let beyond = beyond.collect::<Vec<_>>().join(", ");
    let note = format!("frames beyond the edges: {beyond}");
    let label = if origin == 0.0 {
        format!("{what}, {}", unit.name)
    } else {
        format!("{what}: difference from {}, {}", span(origin), unit.name)
    };
    let ends = [low, high].map(|end| (end - origin) / unit.ns);
    let chart = Chart {
        id: id.to_owned(),
        title,
        description: format!(
            "For each stamp the share of frames by {what}, from {} to {} ns; {note}.",
            number(low),
            number(high)
        ),
        x: Axis::over(label, Scale::Linear, ends),
        y: Axis::over(
            format!("frames, % per {}", unit.name),
            Scale::Linear,
            ys(&drawn).chain([0.0]),
        ),
        series: drawn,
        band: None,
    };
    Some(Figure::new(chart, vec![note], None))
}

/// A stamp's histogram, in the look of the stamp.
struct Named {
    stamp: &'static str,
    style: usize,
    histogram: Histogram,
}

fn histograms(comparison: &Comparison, of: impl Fn(&Subject) -> Option<Histogram>) -> Vec<Named> {
    let subjects = comparison.subjects.iter().enumerate();
    let histograms = subjects.filter_map(|(style, subject)| {
        Some(Named {
            stamp: stamp(subject.source, &subject.path),
            style,
            histogram: of(subject)?,
        })
    });
    histograms.collect()
}

/// Those of one pattern, the kernel's own stamp last.
fn precise(
    comparison: &Comparison,
    pattern: &str,
    of: impl Fn(&Precision) -> Option<Histogram>,
) -> Vec<Named> {
    let stamped = tables::stamped(comparison).into_iter().enumerate();
    let histograms = stamped.filter_map(|(style, (stamp, each))| {
        let precision = each.iter().find(|it| it.pattern == pattern)?;
        Some(Named {
            stamp,
            style,
            histogram: of(precision)?,
        })
    });
    histograms.collect()
}

/// A round time, ns, as it is said: 20.2 ms.
fn span(ns: f64) -> String {
    let unit = Unit::of(ns);
    format!("{} {}", ns / unit.ns, unit.name)
}
