//! Where and how it was measured.

use super::Table;
use crate::compare::schema::Comparison;
use crate::numbers::grouped;
use crate::report::words::{command, maybe, number};

/// Where and how it was measured.
pub(in crate::report) fn environment(comparison: &Comparison) -> Table {
    let (machine, method) = (&comparison.machine, &comparison.method);
    let [one, five, fifteen] = machine.load.map(number);
    let frames = maybe(method.frame_bytes, |bytes| format!(" of {bytes} B"));
    let facts = [
        ("kernel", machine.kernel.clone()),
        ("CPU", format!("{}, {} online", machine.cpu, machine.cpus)),
        ("clock source", machine.clocksource.clone()),
        (
            "virtualisation",
            machine.virtualisation.clone().unwrap_or("none".to_owned()),
        ),
        (
            "governor",
            machine.governor.clone().unwrap_or("none".to_owned()),
        ),
        ("load", format!("{one} {five} {fifteen} (1, 5, 15 min)")),
        (
            "steal",
            format!("{} % of the CPUs' time", number(machine.steal_percent)),
        ),
        (
            "interface",
            format!("{} ({})", machine.interface, machine.driver),
        ),
        (
            "method",
            format!(
                "{} rounds, {} frames{} of each stamp in each, on CPU {}",
                method.rounds,
                grouped(method.frames.into()),
                match method.frame_bytes {
                    Some(_) => frames,
                    None => " of live traffic".to_owned(),
                },
                method.cpu
            ),
        ),
        (
            "ran",
            format!(
                "{}, for {} s",
                started(comparison),
                number(comparison.seconds)
            ),
        ),
        ("tscap", comparison.tscap.clone()),
        ("command", command(&comparison.command)),
    ];
    Table {
        title: String::new(),
        head: Vec::new(),
        rows: facts.map(|(name, fact)| vec![name.to_owned(), fact]).into(),
        words: &[0, 1],
        notes: Vec::new(),
    }
}

/// What the kernel does about the CPU's vulnerabilities.
pub(in crate::report) fn mitigations(comparison: &Comparison) -> Table {
    let each = comparison.machine.mitigations.iter();
    Table {
        title: "Mitigations".to_owned(),
        head: vec!["vulnerability", "the kernel's answer"],
        rows: each
            .map(|(name, answer)| vec![name.clone(), answer.clone()])
            .collect(),
        words: &[0, 1],
        notes: Vec::new(),
    }
}

/// When it began.
fn started(comparison: &Comparison) -> String {
    let since_epoch = std::time::Duration::from_nanos(comparison.started_ns);
    let time = std::time::SystemTime::UNIX_EPOCH + since_epoch;
    humantime::format_rfc3339_seconds(time).to_string()
}
