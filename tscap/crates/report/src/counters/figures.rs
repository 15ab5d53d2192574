//! Charts of counters.

use super::tables::name;
use tscap_document::Figure;
use tscap_document::chart::{Axis, Chart, Interval, Scale, Series, Shape, intervals, quoted};
use tscap_lab::counters::schema::{LatencyPoint, Reference, Subject};
use tscap_lab::counters::{Characteristics, Quartiles};

/// Latencies over time (Fig. 14), boxes and histograms of each phase (Figs. 14 to 16), rates over
/// time (Fig. 13), deviations (Fig. 12), errors of clocks (Figs. 17 and 18).
pub(super) fn all(of: &Characteristics) -> Vec<Figure> {
    let phases = 0..of.phases.len();
    let each = |phase| [access(of, phase), histograms(of, phase)];
    let of_phases = phases.flat_map(each).flatten();
    let others = [rates(of), scales(of), clocks(of)].into_iter().flatten();
    let all = latencies(of).into_iter().chain(of_phases).chain(others);
    all.collect()
}

/// What reading each takes over time.
fn latencies(of: &Characteristics) -> Option<Figure> {
    let points = |subject: &Subject| {
        let course = subject.latency_course.iter();
        let point = |it: &LatencyPoint| (it.seconds, it.cycles.max(1) as f64);
        course.map(point).collect()
    };
    let series = series(of, Shape::Line, points);
    let xs = series.iter().flat_map(|it| &it.points).map(|(x, _)| *x);
    let ys = series.iter().flat_map(|it| &it.points).map(|(_, y)| *y);
    let chart = Chart {
        id: "latencies".to_owned(),
        title: "Reading a counter over time".to_owned(),
        description: "The median of the cycles that a reading of each counter takes, over time."
            .to_owned(),
        x: Axis::over("time, s", Scale::Linear, xs),
        y: Axis::over("cycles of the TSC", Scale::Log, ys),
        series,
        band: None,
    };
    let note = "each point: the median of a look, or of several in a row".to_owned();
    chart
        .has_curve()
        .then(|| Figure::new(chart, vec![note], None))
}

/// How many readings took so long in a phase.
fn histograms(of: &Characteristics, phase: usize) -> Option<Figure> {
    let points = |subject: &Subject| {
        let bars = subject.latency_histogram.get(phase);
        let bars = bars.map_or(&[][..], Vec::as_slice);
        let all: u64 = bars.iter().map(|bar| bar.n).sum();
        let mut points: Vec<(f64, f64)> = Vec::new();
        for bar in bars {
            let (from, to) = (bar.from_cycles.max(1) as f64, bar.to_cycles.max(1) as f64);
            // No reading took as long as what lies between two bars.
            if points.last().is_some_and(|(end, _)| *end < from) {
                points.push((points[points.len() - 1].0, 0.0));
            }
            points.push((from, 100.0 * bar.n as f64 / all as f64));
            points.push((to, 0.0));
        }
        points
    };
    let series = series(of, Shape::Steps, points);
    let xs = series.iter().flat_map(|it| &it.points).map(|(x, _)| *x);
    let ys = series.iter().flat_map(|it| &it.points).map(|(_, y)| *y);
    let name = name(phase, &of.phases[phase]);
    let chart = Chart {
        id: format!("histogram-{}", phase + 1),
        title: format!("Histogram of readings, {name}"),
        description: "The share of the readings of each counter that took so many cycles."
            .to_owned(),
        x: Axis::over("cycles of the TSC", Scale::Log, xs),
        y: Axis::over("% of the readings", Scale::Linear, ys),
        series,
        band: None,
    };
    let note = "up to 99.9 % of the readings of each counter".to_owned();
    chart
        .has_curve()
        .then(|| Figure::new(chart, vec![note], None))
}

/// How far a clock of each counter is off the reference.
fn clocks(of: &Characteristics) -> Option<Figure> {
    let counters = of.counters.iter().enumerate();
    let rows = counters.filter_map(|(style, subject)| {
        let clock = subject.clock.as_ref()?;
        let [low, high] = [clock.p25_ns, clock.p75_ns].map(|it| it as f64);
        Some(Interval {
            name: subject.counter.name().to_owned(),
            style,
            value: clock.p50_ns as f64,
            interval: [clock.p1_ns as f64, clock.p99_ns as f64],
            bar: None,
            shaded: Some(((low + high) / 2.0, (high - low) / 2.0)),
        })
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let x = Axis::over(
        "ns",
        Scale::Linear,
        rows.iter().flat_map(|row| row.interval),
    );
    let title = format!(
        "Error of a clock of each counter beside {}",
        of.reference.title()
    );
    let description = "For each counter the error of a feed-forward clock that counts by it: 1 to \
                       99 % and quartiles; a table below has each.";
    let csv = of.counters.iter().filter_map(|subject| {
        let it = subject.clock.as_ref()?;
        let (p1, p25, p50) = (it.p1_ns, it.p25_ns, it.p50_ns);
        let name = quoted(subject.counter.name());
        Some(format!(
            "{name},{p1},{p25},{p50},{},{}\n",
            it.p75_ns, it.p99_ns
        ))
    });
    let csv: String = csv.collect();
    let csv = format!("counter,p1,p25,p50,p75,p99\n{csv}");
    let notes = vec!["whiskers: 1 and 99 %; shaded: quartiles; marker: median".to_owned()];
    let drawn = title.clone();
    Some(Figure::drawn("clocks", title, notes, move || {
        let drawing = intervals("clocks", &drawn, description, &x, &rows);
        (drawing, csv.clone())
    }))
}

/// What reading each takes in a phase.
fn access(of: &Characteristics, phase: usize) -> Option<Figure> {
    let counters = of.counters.iter().enumerate();
    let rows = counters.filter_map(|(style, subject)| {
        let latency = subject.latency.get(phase).copied().flatten()?;
        Some((drawn(style, subject, &latency)?, latency))
    });
    let (rows, all): (Vec<_>, Vec<_>) = rows.unzip();
    if rows.is_empty() {
        return None;
    }
    let ends = rows.iter().flat_map(|row| row.interval);
    let x = Axis::over("cycles of the TSC", Scale::Log, ends);
    let id = format!("access-{}", phase + 1);
    let title = format!("Reading a counter, {}", name(phase, &of.phases[phase]));
    let description = "For each counter the cycles that a reading takes: least, quartiles and 95 %; \
                       the tables below have each.";
    let cell = |value: Option<i64>| value.map_or(String::new(), |value| value.to_string());
    let csv = rows.iter().zip(&all).map(|(row, of)| {
        let quantiles = [of.p25, of.p50, of.p75, of.p95, of.p99_9]
            .map(cell)
            .join(",");
        format!("{},{},{quantiles},{}\n", quoted(&row.name), of.min, of.max)
    });
    let csv: String = csv.collect();
    let csv = format!("counter,min,p25,p50,p75,p95,p99.9,max\n{csv}");
    let notes = vec!["whiskers: least and 95 %; shaded: quartiles; marker: median".to_owned()];
    let of = (id.clone(), title.clone());
    Some(Figure::drawn(&id, title, notes, move || {
        let drawing = intervals(&of.0, &of.1, description, &x, &rows);
        (drawing, csv.clone())
    }))
}

/// A box on a logarithmic axis, which begins at one cycle.
fn drawn(style: usize, subject: &Subject, latency: &Quartiles) -> Option<Interval> {
    let cycles = |value: i64| value.max(1) as f64;
    let [low, high] = [latency.p25?, latency.p75?].map(cycles);
    Some(Interval {
        name: subject.counter.name().to_owned(),
        style,
        value: cycles(latency.p50?),
        interval: [cycles(latency.min), cycles(latency.p95?)],
        bar: None,
        shaded: Some(((low + high) / 2.0, (high - low) / 2.0)),
    })
}

/// A series of each counter that has points.
fn series(
    of: &Characteristics,
    shape: Shape,
    points: impl Fn(&Subject) -> Vec<(f64, f64)>,
) -> Vec<Series> {
    let counters = of.counters.iter().enumerate();
    let each = counters.map(|(style, subject)| Series {
        name: subject.counter.name().to_owned(),
        style,
        shape,
        points: points(subject),
    });
    each.filter(|series| !series.points.is_empty()).collect()
}

fn rates(of: &Characteristics) -> Option<Figure> {
    let points = |subject: &Subject| {
        let course = subject.course.iter();
        course.map(|point| (point.seconds, point.ppm)).collect()
    };
    let series = series(of, Shape::Line, points);
    let xs = series.iter().flat_map(|it| &it.points).map(|(x, _)| *x);
    let ys = series.iter().flat_map(|it| &it.points).map(|(_, y)| *y);
    let by = of.reference.title();
    let chart = Chart {
        id: "rates".to_owned(),
        title: format!("Rate by {by} over time"),
        description: format!(
            "The rate of each counter by {by}, against the mean of the idle phases, over time."
        ),
        x: Axis::over("time, s", Scale::Linear, xs),
        y: Axis::over("ppm", Scale::Linear, ys),
        series,
        band: None,
    };
    let meaning = match of.reference {
        Reference::Tsc => {
            "beside the TSC: two counters that change alike show nothing here, and one of the same \
             oscillator shows the noise of its readings"
        }
        Reference::Ptp { .. } => "each point: from one look to the next",
    };
    chart
        .has_curve()
        .then(|| Figure::new(chart, vec![meaning.to_owned()], None))
}

fn scales(of: &Characteristics) -> Option<Figure> {
    let points = |subject: &Subject| {
        let scales = subject.scales.iter();
        scales.map(|scale| (scale.tau_s, scale.deviation)).collect()
    };
    let series = series(of, Shape::Marked, points);
    let xs = series.iter().flat_map(|it| &it.points).map(|(x, _)| *x);
    let ys = series.iter().flat_map(|it| &it.points).map(|(_, y)| *y);
    let by = of.reference.title();
    let chart = Chart {
        id: "allan".to_owned(),
        title: format!("Stability by {by}"),
        description: format!("Allan deviation of each counter by {by} on each scale."),
        x: Axis::over("τ, s", Scale::Log, xs),
        y: Axis::over("Allan deviation", Scale::Log, ys),
        series,
        band: None,
    };
    chart
        .has_curve()
        .then(|| Figure::new(chart, Vec::new(), None))
}
