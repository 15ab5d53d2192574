//! The tail of the cost and its memory.

use super::{Figure, series, xs, ys};
use crate::compare::tables;
use crate::compare::words::stamp;
use tscap_base::text::numbers::grouped;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_lab::compare::schema::Comparison;
use tscap_statistics::Summary;

/// How far the cost of the most expensive stamps goes: what a density can't show.
pub(crate) fn tail(comparison: &Comparison) -> Option<Figure> {
    let frames = comparison.subjects.iter().filter_map(|subject| {
        let all = &subject.frame.as_ref()?.all;
        Some(series(comparison, subject, Shape::Marked, points(all)))
    });
    let title = "Tail of the cost of a stamp";
    tails("tail", title, "For each stamp", frames.collect())
}

/// The same with interrupts on and off.
pub(crate) fn interrupts_off(comparison: &Comparison) -> Option<Figure> {
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
    let texts = [
        title,
        whose,
        "cost per frame, ns",
        "share of frames that cost more",
    ];
    of_tails(id, texts, frames)
}

/// The tails of distributions, each with its name and look.
pub(crate) fn tails_of(
    id: &str,
    texts: [&str; 4],
    all: Vec<(String, usize, &Summary)>,
) -> Option<Figure> {
    let series = all.into_iter().map(|(name, style, all)| Series {
        name,
        style,
        shape: Shape::Marked,
        points: points(all),
    });
    of_tails(id, texts, series.collect())
}

/// With title, whose they are, and the labels of both axes.
fn of_tails(id: &str, texts: [&str; 4], frames: Vec<Series>) -> Option<Figure> {
    if frames.is_empty() {
        return None;
    }
    let [title, whose, x, y] = texts;
    let chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        description: format!(
            "{whose} what the most expensive half, tenth, hundredth and thousandth took at least; the table \
             has each."
        ),
        x: Axis::over(x, Scale::Log, xs(&frames)),
        y: Axis::over(y, Scale::Log, ys(&frames)),
        series: frames,
        band: None,
    };
    let note = "p50, p90, p99 and p99.9, as far as ten values are beyond, and the greatest";
    Some(Figure::new(chart, vec![note.to_owned()], None))
}

/// Autocorrelation of the cost: of frames 20 µs apart, and of those of each pattern.
pub(crate) fn autocorrelation(comparison: &Comparison) -> Vec<Figure> {
    let fast = comparison.subjects.iter().enumerate();
    let fast = fast.filter_map(|(style, subject)| {
        let frame = subject.frame.as_ref()?;
        let name = stamp(subject.source, &subject.path);
        Some(Lags::new(name, style, &frame.autocorrelation, frame.all.n))
    });
    let title = "Autocorrelation of the cost of a stamp, frames 20 µs apart".to_owned();
    let fast = lags("autocorrelation".to_owned(), title, fast.collect());
    let patterns = tables::patterns(comparison).into_iter().enumerate();
    let patterns = patterns.filter_map(|(index, pattern)| {
        let stamped = tables::stamped(comparison).into_iter().enumerate();
        let of = stamped.filter_map(|(style, (name, each))| {
            let of = each.iter().find(|it| it.pattern == pattern)?;
            let frames = of.cost_ns.as_ref()?.n;
            Some(Lags::new(name, style, &of.cost_autocorrelation, frames))
        });
        let title = format!("Autocorrelation of the cost of a stamp, {pattern}");
        lags(format!("autocorrelation-{index}"), title, of.collect())
    });
    fast.into_iter().chain(patterns).collect()
}

/// The autocorrelation of one stamp.
struct Lags<'a> {
    name: &'static str,
    style: usize,
    values: &'a [f64],
    frames: u64,
}

impl<'a> Lags<'a> {
    fn new(name: &'static str, style: usize, values: &'a [f64], frames: u64) -> Self {
        Self {
            name,
            style,
            values,
            frames,
        }
    }
}

fn lags(id: String, title: String, mut all: Vec<Lags<'_>>) -> Option<Figure> {
    all.retain(|lags| !lags.values.is_empty());
    let least = all.iter().map(|lags| lags.frames).min();
    let least = least.filter(|n| *n > 0)?;
    // Of white noise, for lags small beside n: Box, Jenkins, Reinsel, Time Series
    // Analysis, 2.1.6.
    let band = 1.96 / (least as f64).sqrt();
    let series = all.iter().map(|lags| Series {
        name: lags.name.to_owned(),
        style: lags.style,
        shape: Shape::Marked,
        points: (1..)
            .map(f64::from)
            .zip(lags.values.iter().copied())
            .collect(),
    });
    let series: Vec<Series> = series.collect();
    let chart = Chart {
        id,
        title,
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
    let values: Vec<_> = all.iter().map(|lags| (lags.name, lags.values)).collect();
    let table = tables::autocorrelation(&values);
    Some(Figure::new(chart, vec![note], Some(table)))
}
