//! Where and how it was measured.

use std::time::{Duration, SystemTime};

use super::Table;
use crate::measuring::compare::schema::Comparison;
use crate::measuring::envelope::Envelope;
use crate::measuring::machine::Machine;
use crate::measuring::report::words::{command, maybe, number};
use crate::text::numbers::counted;

/// Where and how a comparison was made.
pub(in crate::measuring::report) fn environment(comparison: &Comparison) -> Table {
    let method = &comparison.method;
    let frames = maybe(method.frame_bytes, |bytes| format!(" of {bytes} B"));
    let method = format!(
        "{}, {}{} of each stamp in each, on CPU {}",
        counted(method.rounds.into(), "round"),
        counted(method.frames.into(), "frame"),
        match method.frame_bytes {
            Some(_) => frames,
            None => " of live traffic".to_owned(),
        },
        method.cpu
    );
    facts(&comparison.about, method)
}

/// Which command ran, where, and how.
pub(in crate::measuring::report) fn facts(about: &Envelope, method: String) -> Table {
    let machine = &about.machine;
    let [one, five, fifteen] = machine.load.map(number);
    let none = || "none".to_owned();
    let facts = [
        ("kernel", machine.kernel.clone()),
        ("CPU", format!("{}, {} online", machine.cpu, machine.cpus)),
        ("clock source", machine.clocksource.clone()),
        (
            "virtualisation",
            machine.virtualisation.clone().unwrap_or_else(none),
        ),
        ("governor", machine.governor.clone().unwrap_or_else(none)),
        ("load", format!("{one} {five} {fifteen} (1, 5, 15 min)")),
        (
            "steal",
            format!("{} % of the CPUs' time", number(machine.steal_percent)),
        ),
        (
            "interface",
            match machine.driver.is_empty() {
                true => machine.interface.clone(),
                false => format!("{} ({})", machine.interface, machine.driver),
            },
        ),
        ("method", method),
        (
            "ran",
            format!(
                "{}, for {} s",
                time(about.started_ns),
                number(about.seconds)
            ),
        ),
        ("tscap", about.tscap.clone()),
        ("command", command(&about.command)),
    ];
    // Counters are of no interface.
    let is_of_it = |name: &str| name != "interface" || !machine.interface.is_empty();
    let facts = facts.into_iter().filter(|(name, _)| is_of_it(name));
    let rows = facts.map(|(name, fact)| vec![name.to_owned(), fact]);
    Table::figures("", &[], rows.collect()).words(&[0, 1])
}

/// A time in ns since the epoch.
fn time(ns: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// What the kernel does about the CPU's vulnerabilities.
pub(in crate::measuring::report) fn mitigations(machine: &Machine) -> Table {
    let each = machine.mitigations.iter();
    Table::figures(
        "Mitigations",
        &["vulnerability", "the kernel's answer"],
        each.map(|(name, answer)| vec![name.clone(), answer.clone()])
            .collect(),
    )
    .words(&[0, 1])
}
