//! The part as a page with its curves.

use tscap_document::chart::{Axis, Chart, Scale, Series as Curve, Shape};
use tscap_document::{Document, Figure, Section, Shown};

use super::Ntp;
use super::series::{Series, Trace};
use crate::common::report::{Report, Section as _};
use crate::common::target::targets;

/// The page; it loads nothing from elsewhere.
pub fn render(report: &Report, ntp: &Ntp) -> String {
    let of_scenarios = ntp.series.chunk_by(|a, b| a.scenario == b.scenario);
    let of_traces = ntp.traces.chunk_by(|a, b| a.scenario == b.scenario);
    let title = "Clocks over a network, simulated";
    let mut document = Document::new(title, title);
    let of_part = targets(&ntp.targets());
    let sections = [
        Section::Paragraph(report.machine.to_string()),
        Section::Title("Targets".into()),
        Section::Table(of_part),
        Section::Title("Errors over the polling period".into()),
        Section::figures(of_scenarios.map(over_period)),
        Section::Title("Errors over time".into()),
        Section::figures(of_traces.flat_map(|traces| [over_time(traces), histogram(traces)])),
        Section::Title("Figures".into()),
    ];
    document.add_all(Shown::Page, sections);
    document.add_all(Shown::Page, ntp.tables().into_iter().map(Section::Table));
    document.page()
}

/// As figure 9 of the paper: medians, and the other quantiles around them.
fn over_period(all: &[Series]) -> Figure {
    let scenario = all[0].scenario;
    let mut curves = Vec::new();
    for clock in 0..all[0].of_each.len() {
        let quantiles = all[0].of_each[clock].quantiles_us.len();
        for quantile in 0..quantiles {
            let is_median = quantile == quantiles / 2;
            let of = |series: &Series| {
                let (_, spread) = &series.of_each[clock].quantiles_us[quantile];
                (series.period_s as f64, spread.median)
            };
            let (shape, name) = if is_median {
                (Shape::Marked, all[0].of_each[clock].clock)
            } else {
                (Shape::Line, "")
            };
            curves.push(Curve {
                name: name.to_owned(),
                style: clock,
                shape,
                points: all.iter().map(of).collect(),
            });
        }
    }
    let periods = all.iter().map(|series| series.period_s as f64);
    figure(
        format!("period-{}", id(scenario)),
        scenario.to_owned(),
        Axis::over("polling period, s", Scale::Log, periods),
        "error, µs",
        curves,
        "marked: median; lines: p1, p25, p75 and p99; each the median of the series",
    )
}

fn over_time(traces: &[Trace]) -> Figure {
    let hours = traces.iter().flat_map(|trace| &trace.over_time);
    figure(
        format!("time-{}", id(traces[0].scenario)),
        title(traces),
        Axis::over("hours", Scale::Linear, hours.map(|(hours, _)| *hours)),
        "error, µs",
        curves(traces, Shape::Line, |trace| &trace.over_time),
        "of the first series; the table has every clock's quantiles",
    )
}

fn histogram(traces: &[Trace]) -> Figure {
    let errors = traces.iter().flat_map(|trace| &trace.histogram);
    figure(
        format!("histogram-{}", id(traces[0].scenario)),
        format!("{}: histogram", title(traces)),
        Axis::over("error, µs", Scale::Linear, errors.map(|(us, _)| *us)),
        "share, %",
        curves(traces, Shape::Steps, |trace| &trace.histogram),
        "of all errors of the first series",
    )
}

fn title(traces: &[Trace]) -> String {
    format!("{}, polling {} s", traces[0].scenario, traces[0].period_s)
}

fn curves(
    traces: &[Trace],
    shape: Shape,
    points: impl Fn(&Trace) -> &Vec<(f64, f64)>,
) -> Vec<Curve> {
    let curves = traces.iter().enumerate().map(|(style, trace)| Curve {
        name: trace.clock.to_owned(),
        style,
        shape,
        points: points(trace).clone(),
    });
    curves.collect()
}

fn figure(id: String, title: String, x: Axis, y: &str, series: Vec<Curve>, note: &str) -> Figure {
    let values = series.iter().flat_map(|series| &series.points);
    let y = Axis::over(y, Scale::Linear, values.map(|(_, y)| *y).chain([0.0]));
    let chart = Chart {
        id,
        description: format!("A curve for each clock: {note}."),
        title,
        x,
        y,
        series,
        band: None,
    };
    Figure::new(chart, vec![note.to_owned()], None)
}

/// For an attribute.
fn id(scenario: &str) -> String {
    scenario
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect()
}
