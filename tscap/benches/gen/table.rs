//! The report for people.

use crate::common::table::{absent, heading, machine, row, show, text};
use crate::common::target::Target;
use crate::flat_out::FlatOutReport;
use crate::gaps::{Errors, GapsReport, PeriodReport};
use crate::rate::RateReport;
use crate::report::Report;

/// The whole report, the targets first.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    lines.push(format!(
        "senders, receiver and bare loop on CPU {}",
        report.header.machine.cpu
    ));
    lines.extend(heading("targets".into(), "", &["figure"]));
    lines.extend(report.targets.iter().map(Target::row));
    lines.extend(report.flat_out.iter().flat_map(flat_out));
    lines.extend(report.rate.iter().flat_map(rate));
    lines.extend(report.gaps.iter().flat_map(gaps));
    text(&lines)
}

fn flat_out(report: &FlatOutReport) -> Vec<String> {
    let title = format!(
        "flat out, {} bytes, dropped at the other end; rounds: {}",
        report.size, report.rounds
    );
    let mut lines = heading(title, "", &["Mpps"]).to_vec();
    let rows = [
        (
            "live frames, bare redirect (the floor)",
            Some(&report.floor),
        ),
        ("native", Some(&report.native)),
        ("native, TSC in each payload", report.native_tsc.as_ref()),
        ("packet: sendmmsg, 16 frames a call", Some(&report.packet)),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(name, mpps)| Some(row(name, &[show(mpps?, 2)])));
    lines.extend(rows);
    lines.extend(absent(&report.absent));
    lines
}

fn rate(report: &RateReport) -> Vec<String> {
    let title = format!(
        "{} frames a second asked for, {} frames; rounds: {}",
        report.asked, report.frames, report.rounds
    );
    let columns = ["rate off by, ppm", "late, %"];
    let mut lines = heading(title, "", &columns).to_vec();
    lines.extend(report.cells.iter().map(|cell| {
        let off = show(&cell.off.map(|off| off * 1e6), 2);
        let late = show(&cell.late.map(|late| late * 100.0), 2);
        row(cell.sender, &[off, late])
    }));
    lines
}

fn gaps(report: &GapsReport) -> Vec<String> {
    report.periods.iter().flat_map(period).collect()
}

fn period(report: &PeriodReport) -> Vec<String> {
    let title = format!(
        "{}, a frame each {} µs: gaps off by, ns; rounds of {} frames: {}",
        report.name,
        report.period_ns as f64 / 1e3,
        report.frames,
        report.rounds
    );
    let columns = ["p50", "p90", "p99", "all rounds: p99", "p99.9", "max"];
    let mut lines = heading(title, "", &columns).to_vec();
    let cells = [
        ("native", &report.native),
        ("packet", &report.packet),
        ("bare loop", &report.spin),
    ];
    lines.extend(cells.map(|(name, errors)| row(name, &figures(errors))));
    lines
}

fn figures(errors: &Errors) -> Vec<String> {
    let by_round = [&errors.p50, &errors.p90, &errors.p99];
    let by_round = by_round.map(|spread| show(spread, 0));
    let all = errors.all.map(|all| [all.p99, all.p99_9, Some(all.max)]);
    let all = all.unwrap_or_default();
    let all = all.map(|ns| ns.map_or("–".to_owned(), |ns| ns.to_string()));
    [by_round, all].concat()
}
