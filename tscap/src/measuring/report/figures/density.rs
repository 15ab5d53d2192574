//! Densities of costs and inter-arrival times.

use super::{Figure, series, ys};
use crate::measuring::compare::schema::{Comparison, Subject};
use crate::measuring::report::chart::{Axis, Chart, Scale, Series, Shape};
use crate::measuring::report::density::Histogram;
use crate::measuring::report::tables;
use crate::measuring::report::words::{Unit, number, stamp};

/// Density of the cost per frame (figures 2 and 4 of the paper).
pub(in crate::measuring::report) fn costs(comparison: &Comparison) -> Option<Figure> {
    let histograms = histograms(comparison, |subject| {
        let frame = subject.frame.as_ref()?;
        let histogram = Histogram::new(&frame.histogram, frame.bucket_ns)?;
        Some(histogram.in_steps(comparison.method.checkpoint.resolution_ns))
    });
    let title = "Density of the cost of a stamp".to_owned();
    density(comparison, "cost", title, "cost per frame", &histograms)
}

/// Density of inter-arrival times (figures 3 and 5).
pub(in crate::measuring::report) fn inter_arrivals(comparison: &Comparison) -> Vec<Figure> {
    let each = tables::patterns(comparison).into_iter().enumerate();
    let figures = each.filter_map(|(index, pattern)| {
        let histograms = histograms(comparison, |subject| {
            let mut all = subject.precision.iter();
            let of = all.find(|precision| precision.pattern == pattern)?;
            Histogram::new(&of.inter_arrival, of.bucket_ns)
        });
        let title = format!("Density of inter-arrival times, {pattern}");
        let id = format!("inter-arrival-{index}");
        let what = "inter-arrival time";
        density(comparison, &id, title, what, &histograms)
    });
    figures.collect()
}

/// Histograms of all stamps in one chart; `None` of none.
fn density(
    comparison: &Comparison,
    id: &str,
    title: String,
    what: &str,
    histograms: &[(&Subject, Histogram)],
) -> Option<Figure> {
    if histograms.is_empty() {
        return None;
    }
    let ends = histograms
        .iter()
        .flat_map(|(_, histogram)| histogram.main_part());
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
    let drawn = histograms.iter().map(|(subject, histogram)| {
        let density = histogram.density(low, high).into_iter();
        let points =
            density.map(|(value, share)| ((value - origin) / unit.ns, 100.0 * share * unit.ns));
        series(comparison, subject, Shape::Steps, points.collect())
    });
    let drawn: Vec<Series> = drawn.collect();
    let beyond = histograms.iter().map(|(subject, histogram)| {
        let outside = 100.0 * histogram.outside(low, high);
        format!(
            "{} {} %",
            stamp(subject.source, &subject.path),
            number(outside)
        )
    });
    let beyond = beyond.collect::<Vec<_>>().join(", ");
    let note = format!("frames beyond the edges: {beyond}");
    let label = match origin == 0.0 {
        true => format!("{what}, {}", unit.name),
        false => format!("{what}: difference from {}, {}", span(origin), unit.name),
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
    Some(Figure::new(&chart, vec![note], None))
}

fn histograms(
    comparison: &Comparison,
    of: impl Fn(&Subject) -> Option<Histogram>,
) -> Vec<(&Subject, Histogram)> {
    let subjects = comparison.subjects.iter();
    subjects
        .filter_map(|subject| Some((subject, of(subject)?)))
        .collect()
}

/// A round time, ns, as it is said: 20.2 ms.
fn span(ns: f64) -> String {
    let unit = Unit::of(ns);
    format!("{} {}", ns / unit.ns, unit.name)
}
