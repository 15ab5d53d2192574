//! The clock as lines of a table.

use crate::clock::Status;
use crate::numbers::{grouped, signed, span};

/// Lines under one heading.
const PAGE: u64 = 20;

/// A column: heading, width, cell.
type Column = (&'static str, usize, String);

/// A line, under the heading where it is due; `references` stand before the readings.
pub(super) fn line(
    index: u64,
    seconds: f64,
    status: &Status,
    references: impl IntoIterator<Item = ((&'static str, usize), String)>,
) -> String {
    let references = references.into_iter();
    let references = references.map(|((heading, width), cell)| (heading, width, cell));
    let columns = clock(seconds, status).into_iter();
    let columns: Vec<_> = columns.chain(references).chain(readings(status)).collect();
    let heading = if index.is_multiple_of(PAGE) {
        row(&columns, |(heading, ..)| heading) + "\n"
    } else {
        String::new()
    };
    heading + &row(&columns, |(.., cell)| cell) + "\n"
}

fn clock(seconds: f64, status: &Status) -> [Column; 8] {
    let second = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
    let ppm = |ppb: f64| format!("{:.3}", ppb / 1e3);
    let utc = status.utc_bound_ns.map_or("unknown".into(), span);
    [
        ("s", 7, format!("{seconds:.1}")),
        ("TSC, Hz", 14, grouped(second.unsigned_abs())),
        ("± ppm", 8, ppm(status.counter.rate_bound_ppb as f64)),
        ("skew, ppm", 10, ppm(status.skew_ppb as f64)),
        ("offset, ns", 12, signed(status.offset_ns)),
        (
            "abs−diff, ns",
            12,
            signed(status.absolute_less_difference_ns),
        ),
        ("± host", 9, span(status.host_bound_ns)),
        ("± UTC", 10, utc),
    ]
}

fn readings(status: &Status) -> [Column; 2] {
    [
        ("used", 9, grouped(status.readings.used)),
        ("rejected", 9, rejected(status)),
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

fn row(columns: &[Column], text: impl Fn(&Column) -> &str) -> String {
    let cells = columns.iter().map(|column| {
        let width = column.1;
        format!("{:>width$} ", text(column))
    });
    cells.collect::<String>().trim_end().to_owned()
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
        let text = line(0, 1.0, &status, []);
        assert!(text.starts_with("      s"), "{text}");
        assert!(text.ends_with("none\n"), "{text}");
        assert_eq!(line(1, 1.0, &status, []).lines().count(), 1);
        status.wide = 1_200;
        status.readings.implausible = 3;
        let text = line(1, 1.0, &status, []);
        assert!(text.ends_with(" 1,200 wide, 3 implausible\n"), "{text}");
        status.readings.torn = 2;
        assert!(line(1, 1.0, &status, []).contains("1,200 wide, 2 torn, 3"));
    }
}
