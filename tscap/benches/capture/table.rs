//! The report for people.

use crate::cells::{Cell, KindReport, ToolCells};
use crate::common::table::{absent, heading, machine, row, show, text};
use crate::common::target::Target;
use crate::report::Report;

/// The whole report, the targets first.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    lines.extend(report.conditions());
    lines.extend(heading("targets".into(), "", &["figure"]));
    lines.extend(report.targets.iter().map(Target::row));
    lines.extend(report.kinds.iter().flat_map(kind));
    lines.extend(absent(&report.absent));
    text(&lines)
}

fn kind(report: &KindReport) -> Vec<String> {
    let title = format!(
        "{}, {} frames flat out; without a capture {} Mpps, {} ns of CPU a frame",
        report.kind.name(),
        report.frames,
        show(&report.bare_mpps, 2),
        show(&report.bare_ns, 0)
    );
    let columns = [
        "Mpps",
        "lost, %",
        "lossless Mpps",
        "receive ns more",
        "CPU s/M frames",
    ];
    let mut lines = heading(title, "", &columns).to_vec();
    lines.extend(report.tools.iter().map(flat_out));
    let paced = report.tools.iter().flat_map(|cells| {
        let rows = cells.paced.iter();
        rows.map(|cell| at_rate(cells.tool.name(), cell))
    });
    lines.extend(paced);
    let failed = report.tools.iter().flat_map(|cells| {
        let name = cells.tool.name();
        cells
            .failed
            .iter()
            .map(move |why| format!("failed: {name}, {why}"))
    });
    lines.extend(failed);
    lines
}

fn flat_out(cells: &ToolCells) -> String {
    let flat = &cells.flat_out;
    let figures = [
        show(&flat.mpps, 2),
        show(&flat.loss_percent, 2),
        show(&cells.lossless_mpps, 2),
        show(&cells.receive_ns, 0),
        show(&flat.cpu_s, 3),
    ];
    row(cells.tool.name(), &figures)
}

fn at_rate(name: &str, cell: &Cell) -> String {
    let mpps = cell.asked.unwrap_or(0.0) / 1e6;
    let nothing = || "–".to_owned();
    let figures = [
        show(&cell.mpps, 2),
        show(&cell.loss_percent, 2),
        nothing(),
        nothing(),
        show(&cell.cpu_s, 3),
    ];
    row(&format!("{name} at {mpps} Mpps"), &figures)
}
