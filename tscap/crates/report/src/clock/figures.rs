//! Curves of a clock.

use super::{Against, Reference};
use tscap_document::Figure;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_references::log::{Digest, Point};

/// Points of a curve: more would not be seen.
const POINTS: usize = 400;

/// θ̂ with the bound of stamps.
pub(super) fn offset(digest: &Digest) -> Option<Figure> {
    let curves = Curves::of(digest)?;
    let ends = |point: &Point| {
        let (offset, bound) = (point.offset_ns as f64, point.host_bound_ns as f64);
        [offset - bound, offset, offset + bound]
    };
    let (unit_ns, unit) = unit(curves.points().flat_map(ends));
    let mut series: Vec<Series> = curves
        .each()
        .map(|points| {
            let end = |point: &Point, index: usize| (curves.x(point), ends(point)[index] / unit_ns);
            let low = points.iter().map(|point| end(point, 0));
            let high = points.iter().rev().map(|point| end(point, 2));
            let around = low.chain(high);
            shaded(around.collect())
        })
        .collect();
    series.push(curves.series("offset θ̂", 1, |point| point.offset_ns as f64 / unit_ns));
    let chart = Chart {
        id: "offset".to_owned(),
        title: "Offset".to_owned(),
        description: "How far the uncorrected clock is ahead of the host's clock over time, with \
                      the greatest error of a stamp around it."
            .to_owned(),
        x: curves.axis.clone(),
        y: Axis::over(format!("offset, {unit}"), Scale::Linear, ys(&series)),
        series,
        band: None,
    };
    let note = "θ̂: how far p̂·N + K is ahead of the host's clock, where nothing has been corrected; \
                shaded: ± the greatest error of a stamp so far";
    Some(Figure::new(chart, vec![note.to_owned()], None))
}

/// The counter's rate.
pub(super) fn skew(digest: &Digest) -> Option<Figure> {
    let curves = Curves::of(digest)?;
    let last = digest.points.back()?.rate.0 as f64;
    let drift = |point: &Point| (point.rate.0 as f64 / last - 1.0) * 1e6;
    let series = vec![
        curves.series("skew", 1, |point| point.skew_ppb as f64 / 1e3),
        curves.series("p̂", 2, drift),
    ];
    let chart = Chart {
        id: "skew".to_owned(),
        title: "Skew".to_owned(),
        description: "The local rate against p̂, and p̂ against its latest value, over time."
            .to_owned(),
        x: curves.axis.clone(),
        y: Axis::over("ppm", Scale::Linear, ys(&series)),
        series,
        band: None,
    };
    let note = "skew: the local rate against the average p̂, not 0 while the host's clock is slewed; \
                p̂: against its latest value";
    Some(Figure::new(chart, vec![note.to_owned()], None))
}

/// The absolute against the difference clock.
pub(super) fn difference(digest: &Digest) -> Option<Figure> {
    let curves = Curves::of(digest)?;
    let value = |point: &Point| point.absolute_less_difference_ns as f64;
    let (unit_ns, unit) = unit(curves.points().map(value));
    let series = vec![curves.series("absolute − difference", 3, |point| value(point) / unit_ns)];
    let chart = Chart {
        id: "difference".to_owned(),
        title: "Absolute against difference clock".to_owned(),
        description: "How far the absolute clock has gone from the difference clock over time."
            .to_owned(),
        x: curves.axis.clone(),
        y: Axis::over(
            format!("absolute − difference, {unit}"),
            Scale::Linear,
            ys(&series),
        ),
        series,
        band: None,
    };
    let note = "how much further the absolute clock went than p̂·ΔN since the process began, p̂ as \
                it was known in each interval: what intervals by differences of wall-clock time \
                would be wrong by";
    Some(Figure::new(chart, vec![note.to_owned()], None))
}

/// The Allan deviation on each scale.
pub(super) fn deviations(against: &Against) -> Option<Figure> {
    let scales = &against.scales;
    let points: Vec<_> = scales
        .iter()
        .map(|scale| (scale.tau_s, scale.deviation))
        .collect();
    if points.is_empty() {
        return None;
    }
    let bars = scales.iter().flat_map(|scale| {
        let [low, high] = scale.interval.map(|end| (scale.tau_s, end));
        [low, high, (f64::NAN, f64::NAN)]
    });
    let bars = Series {
        name: String::new(),
        style: 1,
        shape: Shape::Line,
        points: bars.collect(),
    };
    let curve = Series {
        name: "Allan deviation".to_owned(),
        style: 1,
        shape: Shape::Marked,
        points,
    };
    let series = vec![curve, bars];
    let x = series[0].points.iter().map(|(x, _)| *x);
    let chart = Chart {
        id: match against.what {
            Reference::Counter => "allan".to_owned(),
            Reference::Device(_) => "allan-reference".to_owned(),
        },
        title: match &against.what {
            Reference::Counter => "Allan deviation against the counter".to_owned(),
            Reference::Device(device) => format!("Stability against {device}"),
        },
        description: format!(
            "Allan deviation of the host's clock against {}; the table below has each scale.",
            against.what.name()
        ),
        x: Axis::over("τ, s", Scale::Log, x),
        y: Axis::over("Allan deviation", Scale::Log, ys(&series)),
        series,
        band: None,
    };
    let meaning = against.what.meaning().to_owned();
    let note = "overlapping Allan deviation of readings every 100 ms: on short scales, where it falls \
                as 1/τ, it is the noise of the readings rather than that of the clock; bars: 95 % by \
                chi squared with the degrees of freedom of the table below";
    Some(Figure::new(chart, vec![meaning, note.to_owned()], None))
}

/// What all curves over time have in common.
struct Curves {
    axis: Axis,
    /// Of each process, thinned.
    processes: Vec<Vec<Point>>,
    start_ns: u64,
    unit_ns: f64,
}

impl Curves {
    /// `None` if there are not two points.
    fn of(digest: &Digest) -> Option<Self> {
        let first = digest.points.front()?;
        let stride = digest.points.len().div_ceil(POINTS);
        let mut processes: Vec<Vec<Point>> = Vec::new();
        for (index, point) in digest.points.iter().enumerate() {
            let process = processes.last_mut();
            let process = process.filter(|points| points[0].process == point.process);
            match process {
                // The last is always there.
                Some(points) if (index + 1).is_multiple_of(stride) => points.push(*point),
                Some(points) if index + 1 == digest.points.len() => points.push(*point),
                Some(_) => {}
                None => processes.push(vec![*point]),
            }
        }
        let last = digest.points.back()?;
        let span = (last.elapsed_ns - first.elapsed_ns) as f64;
        let units = [
            (86_400e9, "days"),
            (3_600e9, "hours"),
            (60e9, "minutes"),
            (1e9, "seconds"),
        ];
        let unit = units.into_iter().find(|(ns, _)| span >= 3.0 * ns);
        let (unit_ns, name) = unit.unwrap_or(units[3]);
        (digest.points.len() > 1).then(|| Self {
            axis: Axis::over(
                format!("time, {name}"),
                Scale::Linear,
                [0.0, span / unit_ns],
            ),
            processes,
            start_ns: first.elapsed_ns,
            unit_ns,
        })
    }

    fn each(&self) -> impl Iterator<Item = &Vec<Point>> {
        self.processes.iter()
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.processes.iter().flatten()
    }

    fn x(&self, point: &Point) -> f64 {
        (point.elapsed_ns - self.start_ns) as f64 / self.unit_ns
    }

    /// A line for each process, all of one look.
    fn series(&self, name: &str, style: usize, y: impl Fn(&Point) -> f64) -> Series {
        let hole = (f64::NAN, f64::NAN);
        let lines = self.each().flat_map(|points| {
            let line = points.iter().map(|point| (self.x(point), y(point)));
            line.chain([hole])
        });
        Series {
            name: name.to_owned(),
            style,
            shape: Shape::Line,
            points: lines.collect(),
        }
    }
}

fn shaded(around: Vec<(f64, f64)>) -> Series {
    Series {
        name: String::new(),
        style: 0,
        shape: Shape::Area,
        points: around,
    }
}

/// In which unit such times are told, and what it is.
pub(super) fn unit(ns: impl Iterator<Item = f64>) -> (f64, &'static str) {
    let most = ns.map(f64::abs).fold(0.0, f64::max);
    match most {
        0.0..5e3 => (1.0, "ns"),
        5e3..5e6 => (1e3, "µs"),
        5e6..5e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

fn ys(series: &[Series]) -> impl Iterator<Item = f64> {
    let points = series.iter().flat_map(|series| &series.points);
    points.map(|(_, y)| *y).chain([0.0])
}
