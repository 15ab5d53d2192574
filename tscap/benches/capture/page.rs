//! The report as a page with its curves.

use maud::{Markup, html};
use tscap::measuring::report::{Axis, Chart, Figure, Scale, Series, Shape, Table, document};

use crate::cells::{Cell, KindReport};
use crate::common::table::show;
use crate::report::Report;

/// The page; it loads nothing from elsewhere.
pub fn render(report: &Report) -> String {
    let machine = &report.header.machine;
    let body = html! {
        h1 { "Captures under load" }
        p { (machine.hardware) ", " (machine.os) "; load " (machine.load) " at the start" }
        ul {
            @for condition in report.conditions() {
                li { (condition) }
            }
        }
        @if !report.absent.is_empty() {
            ul.notices {
                @for absent in &report.absent {
                    li { (absent) }
                }
            }
        }
        h2 { "Targets" }
        (targets(report).markup())
        @for kind in &report.kinds {
            (of_kind(kind))
        }
    };
    document("Captures under load", &body)
}

fn targets(report: &Report) -> Table {
    let rows = report.targets.iter().map(|target| {
        let (bound, verdict) = (target.bound.text(), target.verdict());
        vec![
            target.name.clone(),
            format!("{:.2}", target.value),
            bound,
            verdict.into(),
        ]
    });
    Table {
        title: String::new(),
        head: vec!["", "figure", "wanted", ""],
        rows: rows.collect(),
        words: &[0, 2, 3],
        notes: Vec::new(),
    }
}

fn of_kind(kind: &KindReport) -> Markup {
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
            id: format!("{id}-{}-{}", kind.kind.size, kind.kind.snaplen),
            title: format!("{}: {what}", kind.kind.name()),
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
    html! {
        h2 { (kind.kind.name()) }
        (flat_out(kind).markup())
        div.figures {
            (figure("loss", "frames lost, %", |cell| cell.loss_percent.median).markup())
            (figure("cpu", "CPU s a million frames", |cell| cell.cpu_s.median).markup())
        }
        details {
            summary { "each rate" }
            (rates(kind).markup())
        }
        @for cells in &kind.tools {
            @for why in &cells.failed {
                p.note { "failed: " (cells.tool.name()) ", " (why) }
            }
        }
    }
}

fn flat_out(kind: &KindReport) -> Table {
    let rows = kind.tools.iter().map(|cells| {
        let flat = &cells.flat_out;
        vec![
            cells.tool.name().to_owned(),
            show(&flat.mpps, 2),
            show(&flat.loss_percent, 2),
            show(&cells.lossless_mpps, 2),
            show(&cells.receive_ns, 0),
            show(&flat.cpu_s, 3),
        ]
    });
    let (mpps, ns) = (show(&kind.bare_mpps, 2), show(&kind.bare_ns, 0));
    Table {
        title: format!("Flat out, {} frames: median (least–greatest)", kind.frames),
        head: vec![
            "",
            "Mpps",
            "lost, %",
            "lossless, Mpps",
            "receive side, ns a frame",
            "CPU, s a million frames",
        ],
        rows: rows.collect(),
        words: &[0],
        notes: vec![format!(
            "lossless: the highest rate found at which nothing was lost; receive side: what a \
             frame takes of the sender's CPU more than the {ns} ns without a capture, which makes \
             {mpps} Mpps"
        )],
    }
}

fn rates(kind: &KindReport) -> Table {
    let rows = kind.tools.iter().flat_map(|cells| {
        cells.paced.iter().map(|cell| {
            vec![
                cells.tool.name().to_owned(),
                format!("{}", cell.asked.unwrap_or(0.0) / 1e6),
                show(&cell.mpps, 2),
                show(&cell.loss_percent, 2),
                show(&cell.cpu_s, 3),
            ]
        })
    });
    Table {
        title: "At set rates".to_owned(),
        head: vec![
            "",
            "Mpps asked for",
            "Mpps",
            "lost, %",
            "CPU, s a million frames",
        ],
        rows: rows.collect(),
        words: &[0],
        notes: Vec::new(),
    }
}
