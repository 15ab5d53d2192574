//! Which figures are drawn in which chart.

use maud::{Markup, html};

use super::chart::{Axis, Chart, Interval, Scale, Series, Shape, intervals};
use super::density::Histogram;
use super::table::Table;
use super::words::{number, short, stamp};
use super::{tables, words};
use crate::compare::schema::{Comparison, LossPoint, Subject};
use crate::numbers::grouped;

/// A density plot shows this share of the values of each stamp; what is beyond
/// is said.
const SHOWN: f64 = 0.995;
/// Where frames sent with no gap at all stand, as a gap, byte times: beside the
/// least gap of Ethernet, 12.
const FLAT_OUT: f64 = 1.0;

/// A chart with what to know to read it, and its table.
pub(super) struct Figure {
    chart: Markup,
    title: String,
    notes: Vec<String>,
    table: Option<Table>,
}

impl Figure {
    fn new(chart: &Chart, notes: Vec<String>, table: Option<Table>) -> Self {
        Self {
            chart: chart.markup(),
            title: chart.title.clone(),
            notes,
            table,
        }
    }

    pub fn markup(&self) -> Markup {
        html! {
            figure {
                figcaption { (self.title) }
                (self.chart)
                @for note in &self.notes {
                    p.note { (note) }
                }
                @if let Some(table) = &self.table {
                    details {
                        summary { "as a table" }
                        (table.markup())
                    }
                }
            }
        }
    }
}

/// Density of the cost per frame and its tail (figures 2 and 4 of the paper).
pub(super) fn costs(comparison: &Comparison) -> Vec<Figure> {
    let histograms = histograms(comparison, |subject| {
        let frame = subject.frame.as_ref()?;
        Histogram::new(&frame.histogram, frame.bucket_ns)
    });
    if histograms.is_empty() {
        return Vec::new();
    }
    let title = "Density of the cost of a stamp".to_owned();
    let density = density(comparison, "cost", title, "cost per frame", &histograms);
    vec![density, tail(comparison)]
}

/// How far the cost of the dearest stamps goes: what a density can't show.
fn tail(comparison: &Comparison) -> Figure {
    let frames = comparison.subjects.iter().filter_map(|subject| {
        let all = &subject.frame.as_ref()?.all;
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
        Some(series(comparison, subject, Shape::Marked, points.collect()))
    });
    let frames: Vec<Series> = frames.collect();
    let chart = Chart {
        id: "tail".to_owned(),
        title: "Tail of the cost of a stamp".to_owned(),
        description:
            "For each stamp what the dearest half, tenth, hundredth and thousandth of the \
                      frames cost at least; the table of costs has each."
                .to_owned(),
        x: Axis::over("cost per frame, ns", Scale::Log, xs(&frames)),
        y: Axis::over("share of frames that cost more", Scale::Log, ys(&frames)),
        series: frames,
        band: None,
    };
    let note = "p50, p90, p99 and p99.9, as far as ten frames are beyond, and the dearest frame";
    Figure::new(&chart, vec![note.to_owned()], None)
}

/// Density of inter-arrival times (figures 3 and 5).
pub(super) fn inter_arrivals(comparison: &Comparison) -> Vec<Figure> {
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
        (!histograms.is_empty()).then(|| density(comparison, &id, title, what, &histograms))
    });
    figures.collect()
}

/// Loss against frame size and against gap (figure 6).
pub(super) fn losses(comparison: &Comparison) -> Vec<Figure> {
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
        Figure::new(&chart, Vec::new(), Some(table))
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
    size.into_iter().chain(gap).collect()
}

/// Autocorrelation of the cost.
pub(super) fn autocorrelation(comparison: &Comparison) -> Option<Figure> {
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

/// Intervals of the verdicts that have one.
pub(super) fn verdicts(comparison: &Comparison) -> Option<Figure> {
    let rows = comparison.verdicts.iter().filter_map(|verdict| {
        let mut subjects = comparison.subjects.iter();
        Some(Interval {
            name: format!("{}, {}", stamp(verdict.source), short(verdict.metric)),
            style: subjects
                .position(|subject| subject.source == verdict.source)
                .unwrap_or(0),
            ratio: verdict.ratio?,
            interval: verdict.interval?,
            margin: verdict.margin,
        })
    });
    let rows: Vec<Interval> = rows.collect();
    let title = "Cost over that of ktime".to_owned();
    (!rows.is_empty()).then(|| Figure {
        chart: intervals(
            "verdicts",
            &title,
            "For each stamp and cost the ratio to that of ktime with its 99 % interval; the table \
             below has each.",
            "ratio",
            &rows,
        ),
        title,
        notes: vec!["shaded: the margin, in which costs are equal for all purposes".to_owned()],
        table: Some(tables::verdicts(comparison)),
    })
}

/// Histograms of all stamps in one chart.
fn density(
    comparison: &Comparison,
    id: &str,
    title: String,
    what: &str,
    histograms: &[(&Subject, Histogram)],
) -> Figure {
    let ends = histograms
        .iter()
        .flat_map(|(_, histogram)| [histogram.quantile(1.0 - SHOWN), histogram.quantile(SHOWN)]);
    let mut x = Axis::over("", Scale::Linear, ends);
    // Where the values hardly differ, their differences are the figures.
    let (span, middle) = (x.high - x.low, (x.high + x.low) / 2.0);
    let origin = if span < 0.2 * middle.abs() {
        x.round(middle)
    } else {
        0.0
    };
    let drawn = histograms.iter().map(|(subject, histogram)| {
        let density = histogram.density(x.low, x.high).into_iter();
        let points = density.map(|(value, share)| (value - origin, 100.0 * share));
        series(comparison, subject, Shape::Steps, points.collect())
    });
    let drawn: Vec<Series> = drawn.collect();
    let beyond = histograms.iter().map(|(subject, histogram)| {
        let outside = 100.0 * histogram.outside(x.low, x.high);
        format!("{} {} %", stamp(subject.source), number(outside))
    });
    let note = format!(
        "frames beyond the edges: {}",
        beyond.collect::<Vec<_>>().join(", ")
    );
    x.label = match origin == 0.0 {
        true => format!("{what}, ns"),
        false => format!("{what} less {}, ns", words::whole(origin as i64)),
    };
    x.low -= origin;
    x.high -= origin;
    let chart = Chart {
        id: id.to_owned(),
        title,
        description: format!(
            "For each stamp the share of frames by {what}, from {} to {} ns; {note}.",
            number(x.low + origin),
            number(x.high + origin)
        ),
        y: Axis::over("frames, % per ns", Scale::Linear, ys(&drawn).chain([0.0])),
        x,
        series: drawn,
        band: None,
    };
    Figure::new(&chart, vec![note], None)
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

/// A series for each stamp that has points.
fn sweep(
    comparison: &Comparison,
    points: impl Fn(&Subject) -> &[LossPoint],
    x: impl Fn(&LossPoint) -> f64,
) -> Vec<Series> {
    let all = comparison.subjects.iter().map(|subject| {
        let points = points(subject).iter().filter_map(|point| {
            let loss = words::loss_percent(point.lost, point.sent)?;
            Some((x(point), loss))
        });
        let mut points: Vec<_> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series(comparison, subject, Shape::Marked, points)
    });
    all.filter(|series| !series.points.is_empty()).collect()
}

/// A stamp's series, in its look.
fn series(
    comparison: &Comparison,
    subject: &Subject,
    shape: Shape,
    points: Vec<(f64, f64)>,
) -> Series {
    let mut subjects = comparison.subjects.iter();
    Series {
        name: stamp(subject.source).to_owned(),
        style: subjects
            .position(|other| std::ptr::eq(other, subject))
            .unwrap_or(0),
        shape,
        points,
    }
}

fn xs(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|series| series.points.iter().map(|(x, _)| *x))
}

fn ys(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|series| series.points.iter().map(|(_, y)| *y))
}
