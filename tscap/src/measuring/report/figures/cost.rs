//! The tail of the cost and its memory.

use super::{Figure, series, xs, ys};
use crate::measuring::compare::schema::Comparison;
use crate::measuring::report::chart::{Axis, Chart, Scale, Series, Shape};
use crate::measuring::report::tables;
use crate::measuring::report::words::stamp;
use crate::measuring::statistics::Summary;
use crate::text::numbers::grouped;

/// How far the cost of the dearest stamps goes: what a density can't show.
pub(in crate::measuring::report) fn tail(comparison: &Comparison) -> Option<Figure> {
    let frames = comparison.subjects.iter().filter_map(|subject| {
        let all = &subject.frame.as_ref()?.all;
        Some(series(comparison, subject, Shape::Marked, points(all)))
    });
    let title = "Tail of the cost of a stamp";
    tails("tail", title, "For each stamp", frames.collect())
}

/// The same with interrupts on and off.
pub(in crate::measuring::report) fn interrupts_off(comparison: &Comparison) -> Option<Figure> {
    let ways = comparison.interrupts_off.iter().flat_map(|of| {
        let stamp = stamp(Some(of.source), &of.path);
        [("on", &of.on), ("off", &of.off)].map(|(word, way)| (format!("{stamp}, {word}"), way))
    });
    let all = ways.enumerate().map(|(style, (name, way))| Series {
        name,
        style,
        shape: Shape::Marked,
        points: points(&way.all),
    });
    tails(
        "interrupts-off",
        "Tail of the cost of a stamp, interrupts on and off",
        "For each stamp with interrupts on and off",
        all.collect(),
    )
}

/// Costs and the share of frames above each.
fn points(all: &Summary) -> Vec<(f64, f64)> {
    let quantiles = [
        (all.p50, 0.5),
        (all.p90, 0.1),
        (all.p99, 0.01),
        (all.p99_9, 0.001),
        (Some(all.max), 1.0 / all.n as f64),
    ];
    let points = quantiles
        .into_iter()
        .filter_map(|(value, above)| Some((value? as f64, above)));
    points.collect()
}

fn tails(id: &str, title: &str, whose: &str, frames: Vec<Series>) -> Option<Figure> {
    if frames.is_empty() {
        return None;
    }
    let chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!(
            "{whose} what the dearest half, tenth, hundredth and thousandth of the frames cost at \
             least; the table of costs has each."
        ),
        x: Axis::over("cost per frame, ns", Scale::Log, xs(&frames)),
        y: Axis::over("share of frames that cost more", Scale::Log, ys(&frames)),
        series: frames,
        band: None,
    };
    let note = "p50, p90, p99 and p99.9, as far as ten frames are beyond, and the dearest frame";
    Some(Figure::new(&chart, vec![note.to_owned()], None))
}

/// Autocorrelation of the cost.
pub(in crate::measuring::report) fn autocorrelation(comparison: &Comparison) -> Option<Figure> {
    let frames = comparison.subjects.iter().filter_map(|subject| {
        let frame = subject.frame.as_ref()?;
        (!frame.autocorrelation.is_empty()).then_some((subject, frame))
    });
    let frames: Vec<_> = frames.collect();
    let least = frames
        .iter()
        .map(|(_, frame)| frame.all.n)
        .min()
        .filter(|n| *n > 0)?;
    // Of white noise, for lags small beside n: Box, Jenkins, Reinsel, Time Series
    // Analysis, 2.1.6.
    let band = 1.96 / (least as f64).sqrt();
    let series: Vec<Series> = frames
        .iter()
        .map(|(subject, frame)| {
            let values = frame.autocorrelation.iter().copied();
            let points = (1..).map(f64::from).zip(values).collect();
            series(comparison, subject, Shape::Marked, points)
        })
        .collect();
    let chart = Chart {
        id: "autocorrelation".to_owned(),
        title: "Autocorrelation of the cost of a stamp".to_owned(),
        description: "For each stamp the autocorrelation of the cost of one frame and that of \
                      frames after it; the table below has each lag."
            .to_owned(),
        x: Axis::over("lag, frames", Scale::Linear, xs(&series).chain([0.0])),
        y: Axis::over(
            "autocorrelation",
            Scale::Linear,
            ys(&series).chain([-band, band]),
        ),
        series,
        band: Some(band),
    };
    let note = format!(
        "shaded: ±{}, where 95 % of the values of a series without memory lie ({} frames)",
        format_args!("{band:.3}"),
        grouped(least)
    );
    Some(Figure::new(
        &chart,
        vec![note],
        Some(tables::autocorrelation(comparison)),
    ))
}
