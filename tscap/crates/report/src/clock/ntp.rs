//! Exchanges with NTP servers, as curves and percentiles.

use super::figures::unit;
use tscap_base::text::numbers::{grouped, signed};
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_document::{Figure, Histogram, Table, columns};
use tscap_references::PeerVerdict;
use tscap_references::log::{Digest, NtpHistory};
use tscap_references::ntp::NtpPoint;
use tscap_statistics::quantile;

/// Points of a curve: more would not be seen.
const POINTS: usize = 1_000;
/// Shares of the percentiles (figure 9 of The Case for Feed-Forward Clock Synchronization).
const SHARES: [f64; 5] = [0.01, 0.25, 0.5, 0.75, 0.99];
/// Buckets of a histogram between its first and its last quartile.
const BUCKETS: f64 = 20.0;

/// The host's clock against each server's, the time on the way, and how far single exchanges
/// are off.
pub(super) fn figures(digest: &Digest) -> Vec<Figure> {
    let servers = || digest.ntp.iter().enumerate();
    let one = |(index, history): (usize, &NtpHistory)| {
        [
            over_time(index, history),
            round_trips(index, history),
            histogram(index, history),
        ]
    };
    servers().flat_map(one).flatten().collect()
}

/// Exchanges that a clock was there for.
fn known(history: &NtpHistory) -> impl Iterator<Item = (f64, &NtpPoint)> {
    let points = history.points.iter();
    let first = history.points.front().map_or(0, |(at_ns, _)| *at_ns);
    let points = points.filter(|(_, point)| point.off_ns.is_some());
    points.map(move |(at_ns, point)| (at_ns.saturating_sub(first) as f64 / 1e9, point))
}

fn over_time(index: usize, history: &NtpHistory) -> Option<Figure> {
    let count = known(history).count();
    if count < 2 {
        return None;
    }
    let points: Vec<_> = known(history).step_by(count.div_ceil(POINTS)).collect();
    let ends = |point: &NtpPoint| {
        let (ahead, bound) = (point.ahead_ns as f64, point.bound_ns as f64);
        [ahead - bound, ahead, ahead + bound]
    };
    let (unit_ns, unit) = unit(points.iter().flat_map(|(_, point)| ends(point)));
    let end = |(at, point): &(f64, &NtpPoint), index: usize| (*at, ends(point)[index] / unit_ns);
    let low = points.iter().map(|it| end(it, 0));
    let high = points.iter().rev().map(|it| end(it, 2));
    let alone = points
        .iter()
        .filter(|(_, it)| it.verdict == PeerVerdict::Used);
    let alone = alone.map(|(at, it)| (*at, it.alone_ns as f64 / unit_ns));
    let series = vec![
        series("", 0, Shape::Area, low.chain(high).collect()),
        series("single exchange", 3, Shape::Dots, alone.collect()),
        series(
            "feed-forward clock",
            1,
            Shape::Line,
            points.iter().map(|it| end(it, 1)).collect(),
        ),
    ];
    let chart = Chart {
        id: format!("ntp-{index}"),
        title: format!("The host's clock ahead of {}", history.server.ip()),
        description: "How far the host's clock is ahead of the server over time: by the \
                      feed-forward clock with its greatest error, and by each exchange alone."
            .to_owned(),
        x: seconds(&points),
        y: Axis::over(format!("ahead, {unit}"), Scale::Linear, ys(&series)),
        series,
        band: None,
    };
    let note = "shaded: ± the greatest error, whatever the shares of the ways there and back; dots: \
                as if both ways of that exchange were of one length";
    Some(Figure::new(chart, vec![note.to_owned()], None))
}

fn round_trips(index: usize, history: &NtpHistory) -> Option<Figure> {
    let count = known(history).count();
    if count < 2 {
        return None;
    }
    let points: Vec<_> = known(history).step_by(count.div_ceil(POINTS)).collect();
    let (unit_ns, unit) = unit(points.iter().map(|(_, point)| point.rtt_ns as f64));
    let line = |of: fn(&NtpPoint) -> u64| {
        let line = points.iter().map(|(at, it)| (*at, of(it) as f64 / unit_ns));
        line.collect()
    };
    let series = vec![
        series("round trip", 1, Shape::Dots, line(|it| it.rtt_ns)),
        series(
            "least so far",
            2,
            Shape::Line,
            line(|it| it.rtt_ns.saturating_sub(it.point_error_ns)),
        ),
    ];
    let chart = Chart {
        id: format!("ntp-rtt-{index}"),
        title: format!("Round trips to {}", history.server.ip()),
        description: "The time that each exchange was on the way, and the least so far.".to_owned(),
        x: seconds(&points),
        y: Axis::over(format!("time, {unit}"), Scale::Linear, ys(&series)),
        series,
        band: None,
    };
    let note = "without the time at the server; what is above the least is the point error";
    Some(Figure::new(chart, vec![note.to_owned()], None))
}

fn histogram(index: usize, history: &NtpHistory) -> Option<Figure> {
    let mut off: Vec<i64> = known(history).map(|(_, it)| residual(it)).collect();
    off.sort_unstable();
    let [low, high] = [quantile(&off, 0.25)?, quantile(&off, 0.75)?];
    let width = ((high - low) as f64 / BUCKETS).max(1.0);
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    let share = 1.0 / off.len() as f64;
    for ns in &off {
        let start = (*ns as f64 / width).floor() * width;
        match buckets.last_mut() {
            Some((last, sum)) if *last >= start => *sum += share,
            _ => buckets.push((start, share)),
        }
    }
    let histogram = Histogram::new(&buckets, width)?;
    let [low, high] = histogram.main_part();
    let (unit_ns, unit) = unit([low, high].into_iter());
    let density = histogram.density(low, high).into_iter();
    let points = density.map(|(value, share)| (value / unit_ns, 100.0 * share * unit_ns));
    let series = vec![series("exchanges", 1, Shape::Steps, points.collect())];
    let outside = 100.0 * histogram.outside(low, high);
    let chart = Chart {
        id: format!("ntp-off-{index}"),
        title: format!(
            "Single exchanges with {} off the clock",
            history.server.ip()
        ),
        description: "The share of exchanges by how far each alone is off the feed-forward clock."
            .to_owned(),
        x: Axis::over(
            format!("off, {unit}"),
            Scale::Linear,
            [low / unit_ns, high / unit_ns],
        ),
        y: Axis::over(
            format!("exchanges, % per {unit}"),
            Scale::Linear,
            ys(&series),
        ),
        series,
        band: None,
    };
    let note = format!("what the clock's weighting leaves out; beyond the edges: {outside:.1} %");
    Some(Figure::new(chart, vec![note], None))
}

/// How far an exchange alone is off the clock of all of them, ns.
fn residual(point: &NtpPoint) -> i64 {
    point.alone_ns.saturating_sub(point.ahead_ns)
}

/// A figure of an exchange, ns.
type Of = fn(&NtpPoint) -> i64;

/// Percentiles of each server's exchanges; `None` without any.
pub(super) fn percentiles(digest: &Digest) -> Option<Table> {
    let rows = digest.ntp.iter().flat_map(|history| {
        let server = history.server.ip().to_string();
        let figures: [(&str, Of); 4] = [
            ("host ahead", |it| it.ahead_ns),
            ("± bound", |it| {
                i64::try_from(it.bound_ns).unwrap_or(i64::MAX)
            }),
            ("exchange off", residual),
            ("round trip", |it| {
                i64::try_from(it.rtt_ns).unwrap_or(i64::MAX)
            }),
        ];
        figures.map(|(name, of)| {
            let mut values: Vec<i64> = known(history).map(|(_, point)| of(point)).collect();
            values.sort_unstable();
            let cell = |share| quantile(&values, share).map_or_else(|| "–".to_owned(), signed);
            let mut row = vec![
                server.clone(),
                name.to_owned(),
                grouped(values.len() as u64),
            ];
            row.extend(SHARES.map(cell));
            row
        })
    });
    let head = columns("server | ns | exchanges | 1 % | 25 % | 50 % | 75 % | 99 %");
    Table::figures("Exchanges with NTP servers", &head, rows.collect())
        .words(&[0, 1])
        .note(
            "host ahead: the host's clock less the server's by the feed-forward clock; exchange \
             off: how far an exchange alone is off that; each as of its exchange",
        )
        .if_any()
}

fn seconds(points: &[(f64, &NtpPoint)]) -> Axis {
    let last = points.last().map_or(0.0, |(at, _)| *at);
    Axis::over("time, s", Scale::Linear, [0.0, last])
}

fn series(name: &str, style: usize, shape: Shape, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.to_owned(),
        style,
        shape,
        points,
    }
}

fn ys(series: &[Series]) -> impl Iterator<Item = f64> {
    let points = series.iter().flat_map(|series| &series.points);
    points.map(|(_, y)| *y).chain([0.0])
}
