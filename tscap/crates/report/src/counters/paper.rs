//! The paper's figures beside this machine's, in cycles.

use tscap_document::words::{NOTHING, maybe, whole};
use tscap_document::{Table, columns};
use tscap_lab::counters::schema::Subject;
use tscap_lab::counters::{Characteristics, Counter, Quartiles};

/// What the paper measured, and which counter is the like of it here.
struct Row {
    what: &'static str,
    /// The median and the interquartile range.
    paper: &'static str,
    counter: Counter,
    /// Of the interface alone.
    is_interface: bool,
}

const fn row(what: &'static str, paper: &'static str, counter: Counter) -> Row {
    Row {
        what,
        paper,
        counter,
        is_interface: false,
    }
}

const ROWS: [Row; 7] = [
    row("TSC by the kernel's interface", "420 (0)", Counter::Ktime),
    row("HPET", "1,935 (135)", Counter::Hpet),
    row("ACPI, fast", "3,690 (285)", Counter::AcpiPm),
    row("ACPI, safe", "10,440 (390)", Counter::AcpiPmSafe),
    Row {
        what: "the interface alone",
        paper: "240; 208",
        counter: Counter::RawVdso,
        is_interface: true,
    },
    row("TSC in user space", "about 150", Counter::TscOrdered),
    row("getcounter()", "over 3,500; 1,770", Counter::RawSyscall),
];

/// Of the first phase, which is idle.
pub(super) fn beside(of: &Characteristics) -> Table {
    let cells = |row: Row| {
        let subject = of.counters.iter().find(|it| it.counter == row.counter);
        let first = |subject: &Subject| {
            let phases = if row.is_interface {
                &subject.interface
            } else {
                &subject.latency
            };
            phases.first().copied().flatten()
        };
        vec![
            row.what.to_owned(),
            row.paper.to_owned(),
            subject.and_then(first).map_or(NOTHING.to_owned(), shown),
            row.counter.name().to_owned(),
        ]
    };
    Table::figures(
        "Beside the paper, idle: median and interquartile range, cycles",
        &columns("reading | paper | here | as"),
        ROWS.map(cells).into(),
    )
    .words(&[0, 3])
    .note(
        "two figures of the paper: FreeBSD; Linux. It read every counter in the kernel, by the \
         kernel's interface, on CPUs of about 3 GHz; here HPET and ACPI are read in user space \
         without one, and the interface is that of the vDSO",
    )
}

fn shown(of: Quartiles) -> String {
    format!("{} ({})", maybe(of.p50, whole), maybe(of.iqr(), whole))
}
