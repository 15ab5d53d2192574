//! Charts of counters.

use super::tables::name;
use tscap_document::Figure;
use tscap_document::chart::{Axis, Chart, Interval, Scale, Series, Shape, intervals, quoted};
use tscap_lab::counters::schema::{Reference, Subject};
use tscap_lab::counters::{Characteristics, Quartiles};

/// Boxes of each phase (Fig. 14), rates over time (Fig. 13), deviations (Fig. 12).
pub(super) fn all(of: &Characteristics) -> Vec<Figure> {
    let boxes = (0..of.phases.len()).filter_map(|phase| access(of, phase));
    let others = [rates(of), scales(of)].into_iter().flatten();
    boxes.chain(others).collect()
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
