//! Where and how it was measured.

use super::Table;
use crate::measuring::compare::schema::{Comparison, Machine};
use crate::measuring::report::words::{command, maybe, number};
use crate::text::numbers::counted;

/// Which command ran, where, and how.
pub(in crate::measuring::report) struct Facts<'a> {
    pub machine: &'a Machine,
    pub method: String,
    /// ns since the epoch.
    pub started_ns: u64,
    pub seconds: f64,
    pub tscap: &'a str,
    pub command: &'a [String],
}

/// Where and how a comparison was made.
pub(in crate::measuring::report) fn environment(comparison: &Comparison) -> Table {
    let method = &comparison.method;
    let frames = maybe(method.frame_bytes, |bytes| format!(" of {bytes} B"));
    let facts = Facts {
        machine: &comparison.machine,
        method: format!(
            "{}, {}{} of each stamp in each, on CPU {}",
            counted(method.rounds.into(), "round"),
            counted(method.frames.into(), "frame"),
            match method.frame_bytes {
                Some(_) => frames,
                None => " of live traffic".to_owned(),
            },
            method.cpu
        ),
        started_ns: comparison.started_ns,
        seconds: comparison.seconds,
        tscap: &comparison.tscap,
        command: &comparison.command,
    };
    facts.table()
}

impl Facts<'_> {
    /// A row for each.
    pub fn table(&self) -> Table {
        let machine = self.machine;
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
                format!("{} ({})", machine.interface, machine.driver),
            ),
            ("method", self.method.clone()),
            (
                "ran",
                format!("{}, for {} s", self.started(), number(self.seconds)),
            ),
            ("tscap", self.tscap.to_owned()),
            ("command", command(self.command)),
        ];
        Table {
            title: String::new(),
            head: Vec::new(),
            rows: facts.map(|(name, fact)| vec![name.to_owned(), fact]).into(),
            words: &[0, 1],
            notes: Vec::new(),
        }
    }

    /// When it began.
    fn started(&self) -> String {
        let since_epoch = std::time::Duration::from_nanos(self.started_ns);
        let time = std::time::SystemTime::UNIX_EPOCH + since_epoch;
        humantime::format_rfc3339_seconds(time).to_string()
    }
}

/// What the kernel does about the CPU's vulnerabilities.
pub(in crate::measuring::report) fn mitigations(machine: &Machine) -> Table {
    let each = machine.mitigations.iter();
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
