//! Pictures of delays: how often each length (Figs. 5 to 7 and 9 of the paper), methods
//! beside each other (Fig. 8), the first 200 ms (Fig. 10), and the whole time.

use super::histogram::histogram;
use super::view::View;
use tscap_base::text::numbers::{counted, grouped};
use tscap_delay::schema::{self, First, Slow};
use tscap_document::Figure;
use tscap_document::chart::{
    Axis, Chart, Interval, STYLES, Scale, Series, Shape, intervals, quoted,
};
use tscap_document::words::{Unit, number};

/// Delays that differ by more than this factor are drawn on a logarithmic axis.
const FAR: f64 = 20.0;
/// Most points of a curve: more would not be seen.
const POINTS: usize = 1_500;

/// Least, mean, median and greatest delay of each passage beside the others; `None` if
/// there is one only.
pub(super) fn ranges(views: &[View<'_>]) -> Option<Figure> {
    let of: Vec<_> = views.iter().filter(|view| view.is_first).collect();
    if of.len() < 2 {
        return None;
    }
    let ends = of.iter().flat_map(|view| {
        let of = &view.delays.summary;
        [of.min as f64, of.mean, of.max as f64]
    });
    let axis = Delays::over(ends);
    let scaled = |value: i64| value as f64 / axis.unit.ns;
    let rows = of.iter().enumerate().map(|(index, view)| {
        let of = &view.delays.summary;
        Interval {
            name: view.passage.clone(),
            style: index,
            value: of.mean / axis.unit.ns,
            interval: [scaled(of.min), scaled(of.max)],
            bar: of.p50.map(scaled),
            shaded: None,
        }
    });
    let rows: Vec<Interval> = rows.collect();
    let title = "Methods beside each other";
    let note = "line: least to greatest; marker: mean; bar: median (Fig. 8 of the paper)";
    let draw = move || {
        let csv = rows.iter().map(|row| {
            let [min, max] = row.interval;
            let median = row.bar.map_or(String::new(), |bar| bar.to_string());
            format!("{},{min},{},{median},{max}\n", quoted(&row.name), row.value)
        });
        let csv: String = csv.collect();
        let drawing = intervals(
            "methods",
            title,
            "For each measurement its least, mean, median and greatest delay; the table has each.",
            &axis.axis,
            &rows,
        );
        let unit = axis.unit.name;
        let csv = format!("passage,min ({unit}),mean,median,max\n{csv}");
        (drawing, csv)
    };
    let (title, notes) = (title.to_owned(), vec![note.to_owned()]);
    Some(Figure::drawn("methods", title, notes, draw))
}

/// How often each delay is, for each of them.
pub(super) fn histograms(views: &[View<'_>]) -> Vec<Figure> {
    let each = views.iter().enumerate();
    each.filter_map(|(index, view)| one_histogram(index, view))
        .collect()
}

fn one_histogram(index: usize, view: &View<'_>) -> Option<Figure> {
    let histogram = histogram(&view.delays.histogram)?;
    let ends = Axis::over("", Scale::Linear, histogram.main_part());
    let (low, high) = (ends.low.max(0.0), ends.high);
    let unit = Unit::of(high);
    let density = histogram.density(low, high).into_iter();
    let points = density.map(|(value, share)| (value / unit.ns, 100.0 * share * unit.ns));
    let points: Vec<_> = points.collect();
    let of = &view.delays.summary;
    let micros = |ns: f64| number(ns / 1e3);
    let moments = format!("mean {} µs, σ {} µs", micros(of.mean), micros(of.sd));
    let correction = view.measurement.method.correction.as_ref();
    let corrected = correction.filter(|_| view.is_first).map(|correction| {
        let mean = micros(of.mean - correction.mean_ns);
        format!(", corrected mean {mean} µs")
    });
    let beyond = number(100.0 * histogram.outside(low, high));
    let note = format!(
        "{moments}{}; {}, beyond the edges {beyond} %",
        corrected.unwrap_or_default(),
        counted(of.n, "packet")
    );
    let chart = Chart {
        id: format!("histogram-{index}"),
        title: view.name(),
        description: format!("The share of the packets by their delay; {note}."),
        x: Axis::over(
            format!("delay, {}", unit.name),
            Scale::Linear,
            [low, high].map(|end| end / unit.ns),
        ),
        y: Axis::over(
            format!("packets, % per {}", unit.name),
            Scale::Linear,
            points.iter().map(|(_, y)| *y).chain([0.0]),
        ),
        series: vec![Series {
            name: view.point.to_owned(),
            style: 1,
            shape: Shape::Steps,
            points,
        }],
        band: None,
    };
    Some(Figure::new(chart, vec![note], None))
}

/// The first 200 ms, packet by packet.
pub(super) fn first(views: &[View<'_>]) -> Vec<Figure> {
    let of = views.iter().filter(|view| view.is_first);
    let of: Vec<_> = of.filter(|view| view.delays.first.len() > 1).collect();
    let charts = of.chunks(STYLES).enumerate();
    charts
        .map(|(index, views)| first_of(index, views))
        .collect()
}

fn first_of(index: usize, views: &[&View<'_>]) -> Figure {
    let ends = views.iter().flat_map(|view| &view.delays.first);
    let delays = Delays::over(ends.map(|first| first.delay_ns as f64));
    let mut most = 1;
    let series = views.iter().enumerate().map(|(style, view)| {
        let (points, of) = thinned(&view.delays.first);
        most = most.max(of);
        let point = |first: &First| {
            let at = first.at_ns as f64 / 1e6;
            (at, first.delay_ns as f64 / delays.unit.ns)
        };
        Series {
            name: view.passage.clone(),
            // The first look is black: for one curve the second is friendlier.
            style: style + 1,
            shape: Shape::Dots,
            points: points.iter().map(point).collect(),
        }
    });
    let series: Vec<Series> = series.collect();
    let mut notes = vec!["since the first packet (Fig. 10 of the paper)".to_owned()];
    if most > 2 {
        let most = grouped(most as u64);
        notes.push(format!(
            "of up to {most} packets in a row the fastest and the slowest"
        ));
    }
    let chart = Chart {
        id: format!("first-{index}"),
        title: "The first 200 ms".to_owned(),
        description: "The delay of each of the first packets over the time when it came."
            .to_owned(),
        x: Axis::over("time, ms", Scale::Linear, xs(&series).chain([0.0])),
        y: delays.axis,
        series,
        band: None,
    };
    Figure::new(chart, notes, None)
}

/// At most [`POINTS`] of the packets: of so many in a row the fastest and the slowest.
fn thinned(all: &[First]) -> (Vec<First>, usize) {
    if all.len() <= POINTS {
        return (all.to_vec(), 1);
    }
    let in_a_row = (2 * all.len()).div_ceil(POINTS);
    let ends = all.chunks(in_a_row).flat_map(|chunk| {
        let fastest = chunk.iter().min_by_key(|first| first.delay_ns);
        let slowest = chunk.iter().max_by_key(|first| first.delay_ns);
        fastest.into_iter().chain(slowest).copied()
    });
    (ends.collect(), in_a_row)
}

/// Least, mean and greatest delay over the whole time, with the slowest packets.
pub(super) fn over_time(views: &[View<'_>]) -> Vec<Figure> {
    let of = views.iter().filter(|view| view.is_first);
    let of = of.filter(|view| view.delays.series.len() > 1).enumerate();
    of.map(|(index, view)| over_time_of(index, view)).collect()
}

fn over_time_of(index: usize, view: &View<'_>) -> Figure {
    let series = &view.delays.series;
    let ends = series.iter().flat_map(|it| [it.min_ns, it.max_ns]);
    let delays = Delays::over(ends.map(|ns| ns as f64));
    let line = |of: fn(&schema::Interval) -> f64| {
        let points = series.iter().map(|it| (it.at_s, of(it) / delays.unit.ns));
        points.collect::<Vec<_>>()
    };
    let (least, most) = (line(|it| it.min_ns as f64), line(|it| it.max_ns as f64));
    let around = least.iter().chain(most.iter().rev()).copied().collect();
    let slowest = slowest(view).into_iter();
    let slowest = slowest.map(|(at, ns)| (at, ns / delays.unit.ns));
    let curve = |name: &str, style: usize, shape: Shape, points: Vec<(f64, f64)>| Series {
        name: name.to_owned(),
        style,
        shape,
        points,
    };
    let series = vec![
        curve("", 0, Shape::Area, around),
        curve("greatest", 5, Shape::Line, most),
        curve("mean", 1, Shape::Line, line(|it| it.mean_ns)),
        curve("the slowest packets", 2, Shape::Markers, slowest.collect()),
    ];
    let chart = Chart {
        id: format!("time-{index}"),
        title: format!("Over time: {}", view.name()),
        description: "The least, mean and greatest delay in each interval since the start, and \
                      the slowest packets."
            .to_owned(),
        x: Axis::over("time, s", Scale::Linear, xs(&series[..3]).chain([0.0])),
        y: delays.axis,
        series,
        band: None,
    };
    let note = "shaded: from the least to the greatest of an interval".to_owned();
    Figure::new(chart, vec![note], None)
}

/// The slowest packets: when they came in the time of the series, s, and their delays, ns. The
/// slowest of all tells where both times meet.
fn slowest(view: &View<'_>) -> Vec<(f64, f64)> {
    let packets = &view.delays.slowest;
    let started_ns = view.measurement.about.started_ns;
    let since = |from_ns: u64, at_ns: u64| (at_ns as f64 - from_ns as f64) / 1e9;
    let meeting = packets.first().and_then(|slow| {
        let mut series = view.delays.series.iter();
        let interval = series.find(|it| it.max_ns == slow.delay_ns)?;
        Some((slow.entered_ns, interval.at_s))
    });
    let (from_ns, at_s) = meeting.unwrap_or((started_ns, 0.0));
    let of = |slow: &Slow| (at_s + since(from_ns, slow.entered_ns), slow.delay_ns as f64);
    packets.iter().map(of).collect()
}

/// An axis of delays.
struct Delays {
    axis: Axis,
    unit: Unit,
}

impl Delays {
    /// With room for these, ns.
    fn over(ns: impl Iterator<Item = f64>) -> Self {
        let ns: Vec<f64> = ns.filter(|ns| ns.is_finite()).collect();
        let least = ns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ns.iter().copied().fold(0.0, f64::max);
        let is_far = least > 0.0 && most > FAR * least;
        let unit = if is_far {
            Unit::of((least * most).sqrt())
        } else {
            Unit::of(most)
        };
        let scaled = ns.iter().map(|ns| ns / unit.ns);
        let label = format!("delay, {}", unit.name);
        let axis = if is_far {
            Axis::over(label, Scale::Log, scaled)
        } else {
            Axis::over(label, Scale::Linear, scaled.chain([0.0]))
        };
        Self { axis, unit }
    }
}

fn xs(series: &[Series]) -> impl Iterator<Item = f64> {
    let points = series.iter().flat_map(|series| &series.points);
    points.map(|(x, _)| *x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::view::views;
    use tscap_delay::fixtures::hooks;

    /// Whatever the clocks say of the start.
    #[test]
    fn the_slowest_stand_where_the_greatest_are() {
        let mut measurement = hooks();
        measurement.about.started_ns -= 123_456_789;
        let measurements = [&measurement];
        let views = views(&measurements);
        let series = &views[0].delays.series;
        let points = slowest(&views[0]);
        assert_eq!(points.len(), 10);
        for (at_s, ns) in points {
            let interval = series
                .iter()
                .find(|it| it.max_ns as f64 >= ns && (it.at_s - at_s).abs() < 0.011);
            assert!(interval.is_some(), "{at_s} s, {ns} ns");
        }
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let first = |at_ns, delay_ns| First { at_ns, delay_ns };
        let mut all: Vec<First> = (0..10_000).map(|at| first(at, 100)).collect();
        all[4_321].delay_ns = 9_000;
        all[8_765].delay_ns = 1;
        let (points, in_a_row) = thinned(&all);
        assert!(points.len() <= POINTS && in_a_row == 14, "{in_a_row}");
        assert!(points.contains(&all[4_321]) && points.contains(&all[8_765]));
        assert!(points.is_sorted_by_key(|it| it.at_ns / in_a_row as u64));
        assert_eq!(thinned(&all[..7]), (all[..7].to_vec(), 1));
    }
}
