//! The clock as lines of a table.

use tscap_base::text::numbers::{grouped, minus, signed, span};
use tscap_base::text::table::{self, Side};
use tscap_clock::Status;

/// Lines under one heading.
const PAGE: u64 = 20;

/// One cell with its heading and its width.
pub(super) struct Column {
    /// Columns of a higher one are left out first where not all fit.
    pub rank: u8,
    pub heading: &'static str,
    pub width: usize,
    pub cell: String,
}

impl Column {
    pub fn new(rank: u8, heading: &'static str, width: usize, cell: String) -> Self {
        Self {
            rank,
            heading,
            width,
            cell,
        }
    }
}

/// A line, under the heading where it is due; `references` are the columns of other
/// references. Columns that don't fit the terminal's width are left out.
pub(super) fn line(
    index: u64,
    seconds: f64,
    status: &Status,
    references: Vec<Column>,
    width: Option<usize>,
) -> String {
    let mut columns = columns(seconds, status, references);
    if let Some(width) = width {
        fit(&mut columns, width);
    }
    let heading = if index.is_multiple_of(PAGE) {
        row(&columns, |column| column.heading)
    } else {
        String::new()
    };
    heading + &row(&columns, |column| &column.cell)
}

fn columns(seconds: f64, status: &Status, references: Vec<Column>) -> Vec<Column> {
    let second = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
    let ppm = |ppb: f64| minus(&format!("{:.3}", ppb / 1e3));
    let difference = status.absolute_less_difference_ns;
    let utc = status.utc_bound_ns.map_or("unknown".into(), span);
    let before = [
        (0, "s", 7, format!("{seconds:.1}")),
        (1, "TSC, Hz", 14, grouped(second.unsigned_abs())),
        (3, "± ppm", 8, ppm(status.counter.rate_bound_ppb as f64)),
        (6, "skew, ppm", 10, ppm(status.skew_ppb as f64)),
        (4, "offset, ns", 12, signed(status.offset_ns)),
        (8, "abs−diff, ns", 12, signed(difference)),
        (2, "± host", 9, span(status.host_bound_ns)),
        (5, "± UTC", 10, utc),
    ];
    let after = [
        (9, "used", 9, grouped(status.readings.used)),
        (10, "rejected", 9, rejected(status)),
    ];
    let column = |(rank, heading, width, cell)| Column::new(rank, heading, width, cell);
    before
        .map(column)
        .into_iter()
        .chain(references)
        .chain(after.map(column))
        .collect()
}

/// Leaves out columns until the others fit; the last column of the terminal stays free.
fn fit(columns: &mut Vec<Column>, width: usize) {
    let length = |column: &Column| 1 + column.width.max(column.cell.chars().count());
    while columns.iter().map(length).sum::<usize>() > width {
        let ranks = columns.iter().map(|column| column.rank);
        let Some(highest) = ranks.max().filter(|rank| *rank > 0) else {
            return;
        };
        columns.retain(|column| column.rank < highest);
    }
}

/// How many readings were rejected for which reason.
fn rejected(status: &Status) -> String {
    let reasons = [
        (status.wide, "wide"),
        (status.readings.torn, "torn"),
        (status.readings.implausible, "implausible"),
    ];
    let reported = reasons.iter().filter(|(count, _)| *count > 0);
    let reported: Vec<_> = reported
        .map(|(count, reason)| format!("{} {reason}", grouped(*count)))
        .collect();
    if reported.is_empty() {
        "none".into()
    } else {
        reported.join(", ")
    }
}

fn row(columns: &[Column], text: impl Fn(&Column) -> &str) -> String {
    let cells = columns.iter();
    let cells = cells.map(|column| (text(column), column.width, Side::Right));
    table::row(cells, " ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_clock::scripted::Host;
    use tscap_clock::{StampSource, Tracker};

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
        let slew = Column::new(7, "slew, ppm", 15, "-0.001".into());
        let text = line(0, 1.0, &status, vec![slew], None);
        assert!(
            text.lines()
                .all(|line| line.find("slew, ppm").or(line.find("   -0.001")).is_some())
        );
        assert!(text.starts_with("      s"), "{text}");
        assert!(text.ends_with("none\n"), "{text}");
        assert_eq!(line(1, 1.0, &status, Vec::new(), None).lines().count(), 1);
        status.wide = 1_200;
        status.readings.implausible = 3;
        let text = line(1, 1.0, &status, Vec::new(), None);
        assert!(text.ends_with(" 1,200 wide, 3 implausible\n"), "{text}");
        status.readings.torn = 2;
        assert!(line(1, 1.0, &status, Vec::new(), None).contains("1,200 wide, 2 torn, 3"));
        for width in 40..200 {
            let slew = Column::new(7, "slew, ppm", 15, "-0.001".into());
            let text = line(0, 1.0, &status, vec![slew], Some(width));
            assert!(
                text.lines().all(|line| line.chars().count() < width),
                "{width}: {text}"
            );
            assert!(
                text.contains("TSC, Hz") && text.contains("± host"),
                "{text}"
            );
            assert_eq!(text.contains("rejected"), width >= 150, "{width}: {text}");
        }
    }
}
