//! The report as a page with its curves.

use maud::{Markup, html};
use tscap_report::{Axis, Chart, Figure, Scale, Series, Shape, Table, document, markup};

use super::cells::{Cell, KindReport};
use super::common::report::Report;
use super::common::target::targets;
use super::report::Captures;

/// The page; it loads nothing from elsewhere.
pub fn render(report: &Report, captures: &[Captures]) -> String {
    let machine = &report.machine;
    let body = html! {
        h1 { "Captures under load" }
        p { (machine.hardware) ", " (machine.os) "; load " (machine.load) " at the start" }
        ul {
            @for condition in &report.conditions {
                li { (condition) }
            }
        }
        @if let Some(captures) = captures.first() && !captures.absent.is_empty() {
            ul.notices {
                @for absent in &captures.absent {
                    li { (absent) }
                }
            }
        }
        h2 { "Targets" }
        (markup(&targets(&report.targets)))
        @for captures in captures {
            @for kind in &captures.kinds {
                (of_kind(kind, captures.files(kind)))
            }
        }
    };
    document("Captures under load", &body)
}

fn of_kind(kind: &KindReport, files: Option<Table>) -> Markup {
    let figure = |id: &str, what: &str, figure: fn(&Cell) -> f64| {
        let series = kind.tools.iter().enumerate().map(|(style, cells)| {
            let cells_with = cells.cells().filter(|cell| !cell.points.is_empty());
            let points = cells_with.map(|cell| (cell.mpps.median, figure(cell)));
            let mut points: Vec<_> = points.collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series {
                name: cells.tool.name().to_owned(),
                style,
                shape: Shape::Marked,
                points,
            }
        });
        let series: Vec<_> = series.collect();
        let points = || series.iter().flat_map(|series| &series.points);
        let chart = Chart {
            id: format!(
                "{id}-{}{}-{}",
                kind.part.unwrap_or_default(),
                kind.kind.size,
                kind.kind.snaplen
            ),
            title: format!("{}: {what}", kind.name()),
            description: "For each program a line over the rates; the table has each point."
                .to_owned(),
            x: Axis::over(
                "rate, million frames a second",
                Scale::Linear,
                points().map(|(x, _)| *x).chain([0.0]),
            ),
            y: Axis::over(what, Scale::Linear, points().map(|(_, y)| *y).chain([0.0])),
            series,
            band: None,
        };
        Figure::new(&chart, Vec::new(), None)
    };
    let (flat_out, rates) = kind.tables();
    html! {
        h2 { (kind.name()) }
        (markup(&flat_out))
        @if let Some(files) = files {
            (markup(&files))
        }
        div.figures {
            (figure("loss", "frames lost, %", |cell| cell.loss_percent.median).markup())
            (figure("cpu", "CPU s a million frames", |cell| cell.cpu_s.median).markup())
        }
        @if let Some(rates) = rates {
            details {
                summary { "each rate" }
                (markup(&rates))
            }
        }
    }
}
