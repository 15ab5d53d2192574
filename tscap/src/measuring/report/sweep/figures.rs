//! Loss curves: measured, predicted, and of other programs.

use super::tables::{name, pace, snaplen};
use crate::measuring::loss::schema::{Point, Sweep};
use crate::measuring::report::chart::{Axis, Chart, Scale, Series, Shape};
use crate::measuring::report::figures::Figure;
use crate::text::numbers::ring;

/// What is alike in one chart.
#[derive(Clone, PartialEq, Eq)]
struct Setting {
    /// Empty where rates are the axis.
    pace: String,
    snaplen: u32,
    ring: u64,
}

/// A chart for each pace, snaplen and ring, over the frame size; with one size only,
/// for each snaplen and ring over the rate.
pub(super) fn losses(sweep: &Sweep) -> Vec<Figure> {
    let over_rate = is_over_rate(sweep);
    let setting = |point: &Point| Setting {
        pace: if over_rate {
            String::new()
        } else {
            pace(point)
        },
        snaplen: point.snaplen,
        ring: point.ring_bytes,
    };
    let mut settings: Vec<Setting> = Vec::new();
    for point in &sweep.points {
        let setting = setting(point);
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let charts = settings.iter().enumerate().map(|(index, wanted)| {
        let points = sweep.points.iter().filter(|it| setting(it) == *wanted);
        let chart = chart(index, wanted, points.collect(), over_rate);
        let has_curve = chart.has_curve();
        has_curve.then(|| Figure::new(&chart, Vec::new(), None))
    });
    charts.flatten().collect()
}

fn is_over_rate(sweep: &Sweep) -> bool {
    let mut sizes = sweep.points.iter().map(|point| point.size);
    let first = sizes.next();
    sizes.all(|size| Some(size) == first) && sweep.points.iter().any(|it| it.rate_asked.is_some())
}

fn chart(index: usize, setting: &Setting, points: Vec<&Point>, over_rate: bool) -> Chart {
    let x = |point: &Point| match over_rate {
        true => point.rate_asked.unwrap_or(f64::NAN) / 1e6,
        false => f64::from(point.size),
    };
    let mut series: Vec<Series> = Vec::new();
    let mut add = |name: String, at: (f64, f64)| {
        let found = series.iter_mut().find(|it| it.name == name);
        match found {
            Some(series) => series.points.push(at),
            None => series.push(Series {
                style: series.len(),
                name,
                shape: Shape::Marked,
                points: vec![at],
            }),
        }
    };
    for point in &points {
        add(name(point), (x(point), 100.0 * point.run.loss()));
        if let Some(predicted) = point.predicted {
            let clock = point.clock.map_or("", |clock| clock.name());
            add(
                format!("{clock} predicted"),
                (x(point), 100.0 * predicted.lost()),
            );
        }
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let all = || series.iter().flat_map(|series| series.points.iter());
    let (xs, ys) = (all().map(|(x, _)| *x), all().map(|(_, y)| *y));
    let label = if over_rate {
        "frames a second, million"
    } else {
        "frame size, B"
    };
    let kept = match setting.snaplen {
        0 => "whole frames".to_owned(),
        bytes => format!("snaplen {}", snaplen(bytes)),
    };
    let pace = match over_rate {
        true => String::new(),
        false => format!("{}, ", setting.pace),
    };
    Chart {
        id: format!("loss-{index}"),
        title: format!("{pace}{kept}, ring of {}", ring(setting.ring)),
        description: "Share of the frames lost by each program, and what the model predicts for \
                      tscap; the table below has each point."
            .to_owned(),
        x: Axis::over(label, Scale::Linear, xs),
        y: Axis::over("frames lost, %", Scale::Linear, ys.chain([0.0, 1.0])),
        series,
        band: None,
    }
}
