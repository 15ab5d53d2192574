//! The clock as lines of a table.

use crate::clock::Status;
use crate::numbers::{grouped, signed, span};

/// Lines under one heading.
const PAGE: u64 = 20;

/// One cell with its heading and its width.
pub(super) struct Column {
    pub heading: &'static str,
    pub width: usize,
    pub cell: String,
}

impl Column {
    pub fn new(heading: &'static str, width: usize, cell: String) -> Self {
        Self {
            heading,
            width,
            cell,
        }
    }
}

/// A line, under the heading where it is due; `references` are the columns of other
/// references.
pub(super) fn line(index: u64, seconds: f64, status: &Status, references: Vec<Column>) -> String {
    let columns = columns(seconds, status, references);
    let heading = if index.is_multiple_of(PAGE) {
        row(&columns, |column| column.heading)
    } else {
        String::new()
    };
    heading + &row(&columns, |column| &column.cell)
}

fn columns(seconds: f64, status: &Status, references: Vec<Column>) -> Vec<Column> {
    let second = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
    let ppm = |ppb: f64| format!("{:.3}", ppb / 1e3);
    let difference = status.absolute_less_difference_ns;
    let utc = status.utc_bound_ns.map_or("unknown".into(), span);
    let before = [
        ("s", 7, format!("{seconds:.1}")),
        ("TSC, Hz", 14, grouped(second.unsigned_abs())),
        ("± ppm", 8, ppm(status.counter.rate_bound_ppb as f64)),
        ("skew, ppm", 10, ppm(status.skew_ppb as f64)),
        ("offset, ns", 12, signed(status.offset_ns)),
        ("abs−diff, ns", 12, signed(difference)),
        ("± host", 9, span(status.host_bound_ns)),
        ("± UTC", 10, utc),
    ];
    let after = [
        ("used", 9, grouped(status.readings.used)),
        ("rejected", 9, rejected(status)),
    ];
    let column = |(heading, width, cell)| Column::new(heading, width, cell);
    before
        .map(column)
        .into_iter()
        .chain(references)
        .chain(after.map(column))
        .collect()
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
        let width = column.width;
        format!("{:>width$} ", text(column))
    });
    let row = cells.collect::<String>();
    format!("{}\n", row.trim_end())
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
        let slew = Column::new("slew, ppm", 15, "-0.001".into());
        let text = line(0, 1.0, &status, vec![slew]);
        assert!(
            text.lines()
                .all(|line| line.find("slew, ppm").or(line.find("   -0.001")).is_some())
        );
        assert!(text.starts_with("      s"), "{text}");
        assert!(text.ends_with("none\n"), "{text}");
        assert_eq!(line(1, 1.0, &status, Vec::new()).lines().count(), 1);
        status.wide = 1_200;
        status.readings.implausible = 3;
        let text = line(1, 1.0, &status, Vec::new());
        assert!(text.ends_with(" 1,200 wide, 3 implausible\n"), "{text}");
        status.readings.torn = 2;
        assert!(line(1, 1.0, &status, Vec::new()).contains("1,200 wide, 2 torn, 3"));
    }
}
