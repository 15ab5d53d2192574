//! The report for people.

use crate::common::table::{heading, machine, row, text};
use crate::common::target::Target;
use crate::report::{Report, Soak};

/// The whole report, the targets first.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    lines.extend(heading("targets".into(), "", &["figure"]));
    lines.extend(report.targets.iter().map(Target::row));
    if let Some(highest) = report.highest {
        let highest = format!("{:.2}", highest / 1e6);
        lines.extend(["".into(), row("highest lossless rate, Mpps", &[highest])]);
    }
    lines.extend(report.soaks.iter().flat_map(soak));
    text(&lines)
}

fn soak(soak: &Soak) -> Vec<String> {
    let title = format!("{}: frames of 64 bytes", soak.name);
    let mut lines = heading(title, "", &["figure"]).to_vec();
    let rows = [
        ("seconds", format!("{:.1}", soak.seconds)),
        ("Mpps", format!("{:.3}", soak.rate / 1e6)),
        ("frames sent", soak.sent.to_string()),
        ("frames in the files", soak.read.to_string()),
        ("files", soak.files.to_string()),
        ("GB", format!("{:.2}", soak.bytes as f64 / 1e9)),
        (
            "ring full up to, %",
            format!("{:.1}", soak.ring_fill * 100.0),
        ),
        (
            "stamps less than the one before",
            soak.steps_back.to_string(),
        ),
        (
            "least delay from sent to stamped, ns",
            soak.least_delay_ns.to_string(),
        ),
        ("resident, MB", format!("{:.1}", soak.memory.resident / 1e6)),
        ("looks at it", soak.memory.samples.to_string()),
    ];
    lines.extend(rows.map(|(name, figure)| row(name, &[figure])));
    lines
}
