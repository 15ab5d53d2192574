//! The part as a page with its curves.

use maud::{Markup, html};
use tscap_report::{Axis, Chart, Figure, Scale, Series as Curve, Shape, document, markup};

use super::Ntp;
use super::series::{Series, Trace};
use crate::common::report::{Report, Section};
use crate::common::target::targets;

/// The page; it loads nothing from elsewhere.
pub fn render(report: &Report, ntp: &Ntp) -> String {
    let machine = &report.machine;
    let of_scenarios = ntp.series.chunk_by(|a, b| a.scenario == b.scenario);
    let of_traces = ntp.traces.chunk_by(|a, b| a.scenario == b.scenario);
    let body = html! {
        h1 { "Clocks over a network, simulated" }
        p { (machine.hardware) ", " (machine.os) "; load " (machine.load) " at the start" }
        h2 { "Targets" }
        (markup(&targets(&ntp.targets())))
        h2 { "Errors over the polling period" }
        div.figures {
            @for series in of_scenarios {
                (over_period(series))
            }
        }
        h2 { "Errors over time" }
        div.figures {
            @for traces in of_traces {
                (over_time(traces))
                (histogram(traces))
            }
        }
        h2 { "Figures" }
        @for table in ntp.tables() {
            (markup(&table))
        }
    };
    document("Clocks over a network, simulated", &body)
}

/// As figure 9 of the paper: medians, and the other quantiles around them.
fn over_period(all: &[Series]) -> Markup {
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
            let (shape, name) = match is_median {
                true => (Shape::Marked, all[0].of_each[clock].clock),
                false => (Shape::Line, ""),
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

fn over_time(traces: &[Trace]) -> Markup {
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

fn histogram(traces: &[Trace]) -> Markup {
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

fn figure(id: String, title: String, x: Axis, y: &str, series: Vec<Curve>, note: &str) -> Markup {
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
    Figure::new(&chart, vec![note.to_owned()], None).markup()
}

/// For an attribute.
fn id(scenario: &str) -> String {
    scenario
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect()
}
