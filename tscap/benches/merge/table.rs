//! The report for people.

use crate::Report;
use crate::measure::Cell;

/// The whole report.
pub fn render(report: &Report) -> String {
    let machine = &report.header.machine;
    let mut text = format!(
        "{}, {}\nload {} at the start; medians (least–greatest of {} rounds) on CPU {}\n\n\
         converter, 64-byte frames, CPU ns a frame, output discarded\n\
         {:>5} {:>9} {:>7} {:>18}\n",
        machine.hardware,
        machine.os,
        machine.load,
        report.rounds,
        machine.cpu,
        "rings",
        "frames",
        "burst",
        "ns",
    );
    for cell in &report.cells {
        text += row(cell).trim_end();
        text.push('\n');
    }
    text
}

fn row(cell: &Cell) -> String {
    let ns = &cell.ns;
    let figures = format!("{:.1} ({:.1}–{:.1})", ns.median, ns.min, ns.max);
    let verdict = match cell.target_ns {
        None => String::new(),
        Some(target) if cell.is_missed() => format!("target {target}: MISSED, not asserted"),
        Some(target) => format!("target {target}: met"),
    };
    format!(
        "{:>5} {:>9} {:>7} {figures:>18}  {verdict}",
        cell.rings, cell.frames, cell.burst
    )
}
