//! The report for people.

use tscap::measuring::loss::schema::Point;

use crate::common::table::{self, heading, machine, row};
use crate::common::target::Target;
use crate::report::Report;

/// The whole report as text.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    for measured in &report.rounds {
        let costs = &measured.calibration.costs;
        lines.extend(heading(
            format!("{:?}: {costs:?}", measured.part),
            "size, snaplen, ring, frames/s",
            &["before", "ring", "lost, %", "foretold, %", "off"],
        ));
        lines.extend(measured.points.iter().map(point));
    }
    lines.push(String::new());
    lines.extend(report.targets.iter().map(Target::row));
    table::text(&lines)
}

fn point(point: &Point) -> String {
    let run = &point.run;
    let share = |frames: u64| 100.0 * frames as f64 / run.sent as f64;
    let foretold = point.foretold.map_or(0.0, |it| 100.0 * it.lost());
    let lost = 100.0 * run.loss();
    let what = format!(
        "{} B, {}, {} KiB, {:.0}",
        point.size,
        point.snaplen,
        point.ring_bytes >> 10,
        point.rate_asked.unwrap_or(f64::INFINITY),
    );
    let figures = [
        share(run.lost.before),
        share(run.lost.ring),
        lost,
        foretold,
        foretold - lost,
    ];
    row(&what, &figures.map(|figure| format!("{figure:.1}")))
}
