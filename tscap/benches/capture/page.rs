//! The report as a page with its curves.

use tscap_document::chart::{Axis, Chart, Scale, Series, Shape};
use tscap_document::{Document, FLUSH, Figure, Section, Shown, Table};

use super::cells::{Cell, KindReport};
use super::common::report::Report;
use super::common::target::targets;
use super::report::Captures;

/// The page; it loads nothing from elsewhere.
pub fn render(report: &Report, captures: &[Captures]) -> String {
    let mut document = Document::new("Captures under load", "Captures under load");
    let absent = captures.first().map(|captures| captures.absent.clone());
    let sections = [
        Section::Paragraph(report.machine.to_string()),
        Section::Sentences(FLUSH, report.conditions.clone()),
        Section::Notices(absent.unwrap_or_default()),
        Section::Title("Targets".into()),
        Section::Table(targets(&report.targets)),
    ];
    document.add_all(Shown::Page, sections);
    for captures in captures {
        for kind in &captures.kinds {
            document.add_all(Shown::Page, of_kind(kind, captures.files(kind)));
        }
    }
    document.page()
}

fn of_kind(kind: &KindReport, files: Option<Table>) -> impl Iterator<Item = Section> {
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
        Figure::new(chart, Vec::new(), None)
    };
    let (flat_out, rates) = kind.tables();
    let figures = [
        figure("loss", "frames lost, %", |cell| cell.loss_percent.median),
        figure("cpu", "CPU s a million frames", |cell| cell.cpu_s.median),
    ];
    let sections = [
        Some(Section::Title(kind.name())),
        Some(Section::Table(flat_out)),
        files.map(Section::Table),
        Some(Section::figures(figures)),
        rates.map(|rates| Section::Folded("each rate", rates)),
    ];
    sections.into_iter().flatten()
}
