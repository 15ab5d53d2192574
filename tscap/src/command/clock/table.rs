//! The clock as lines of a table.

use crate::clock::Status;
use crate::numbers::{grouped, signed, span};

/// Lines under one heading.
const PAGE: u64 = 20;

const HEADING: [&str; COLUMNS] = [
    "s",
    "TSC, Hz",
    "± ppm",
    "skew, ppm",
    "offset, ns",
    "abs−diff, ns",
    "± host",
    "± UTC",
    "used",
    "rejected",
];
const COLUMNS: usize = 10;

/// A line, under the heading where it is due.
pub(super) fn line(index: u64, seconds: f64, status: &Status) -> String {
    let heading = if index.is_multiple_of(PAGE) {
        format!("{}\n", row(&HEADING.map(String::from)))
    } else {
        String::new()
    };
    format!("{heading}{}\n", row(&cells(seconds, status)))
}

fn cells(seconds: f64, status: &Status) -> [String; COLUMNS] {
    let second = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
    let ppm = |ppb: f64| format!("{:.3}", ppb / 1e3);
    [
        format!("{seconds:.1}"),
        grouped(second.unsigned_abs()),
        ppm(status.counter.rate_bound_ppb as f64),
        ppm(status.skew_ppb as f64),
        signed(status.offset_ns),
        signed(status.absolute_less_difference_ns),
        span(status.host_bound_ns),
        status.utc_bound_ns.map_or("unknown".into(), span),
        grouped(status.readings.used),
        rejected(status),
    ]
}

/// How many readings were rejected for which reason.
fn rejected(status: &Status) -> String {
    let reasons = [
        (status.wide, "wide"),
        (status.readings.torn, "torn"),
        (status.readings.implausible, "implausible"),
    ];
    let told = reasons.iter().filter(|(count, _)| *count > 0);
    let told: Vec<_> = told
        .map(|(count, reason)| format!("{} {reason}", grouped(*count)))
        .collect();
    match told.is_empty() {
        true => "none".into(),
        false => told.join(", "),
    }
}

fn row(cells: &[String; COLUMNS]) -> String {
    const WIDTHS: [usize; COLUMNS] = [7, 14, 8, 10, 12, 12, 9, 10, 9, 9];
    let cells = cells.iter().zip(WIDTHS);
    cells
        .map(|(cell, width)| format!("{cell:>width$} "))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::scripted::Host;
    use crate::clock::{StampSource, Tracker};

    #[test]
    fn each_reason_of_a_rejection_is_told() {
        let host = Host {
            hertz: 2_000_000_000,
            slews: vec![],
        };
        let gaps = [20, 40, 20];
        let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, gaps)).unwrap();
        tracker.observe(&host.cross(100_000_000, gaps));
        let tsc = host.cycles(100_000_000);
        let mut status = Status::of(&tracker, tsc, None, None).unwrap();
        let text = line(0, 1.0, &status);
        assert!(text.starts_with("      s"), "{text}");
        assert!(text.ends_with("none\n"), "{text}");
        assert_eq!(line(1, 1.0, &status).lines().count(), 1);
        status.wide = 1_200;
        status.readings.implausible = 3;
        let text = line(1, 1.0, &status);
        assert!(text.ends_with(" 1,200 wide, 3 implausible\n"), "{text}");
        status.readings.torn = 2;
        assert!(line(1, 1.0, &status).contains("1,200 wide, 2 torn, 3"));
    }
}
