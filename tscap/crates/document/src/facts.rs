//! Where and how it was measured.

use std::time::{Duration, SystemTime};

use super::table::Table;
use super::words::{command, number};
use tscap_base::text::escaped::escaped;
use tscap_file::pcapng::Origin;
use tscap_results::envelope::Envelope;
use tscap_results::machine::Machine;

/// Which command ran, where, and how.
pub fn facts(about: &Envelope, method: String) -> Table {
    if let Some(captured) = &about.captured {
        return of_capture(about, captured, method);
    }
    let machine = &about.machine;
    let [one, five, fifteen] = machine.load.map(number);
    let none = || "none".to_owned();
    let facts = [
        ("kernel", machine.kernel.clone()),
        ("CPU", format!("{}, {} online", machine.cpu, machine.cpus)),
        ("clock source", machine.clocksource.clone()),
        ("off UTC", machine.utc_words().unwrap_or_default()),
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
            if machine.driver.is_empty() {
                machine.interface.clone()
            } else {
                format!("{} ({})", machine.interface, machine.driver)
            },
        ),
        ("method", method),
        ("times by", times_by(about)),
        ("ran", ran(about)),
        ("tscap", about.tscap.clone()),
        ("command", command(&about.command)),
    ];
    // Counters are of no interface, and nothing may bound the clock.
    let is_of_it = |name: &str, fact: &str| {
        !(fact.is_empty() && ["interface", "off UTC", "times by"].contains(&name))
    };
    let facts = facts
        .into_iter()
        .filter(|(name, fact)| is_of_it(name, fact));
    let rows = facts.map(|(name, fact)| vec![name.to_owned(), fact]);
    Table::figures("", &[], rows.collect()).words(&[0, 1])
}

/// The same of a capture that was analysed, here or elsewhere: nothing of the machine that did so
/// tells how the packets were stamped.
fn of_capture(about: &Envelope, captured: &[Origin], method: String) -> Table {
    let machine = &about.machine;
    let mut by: Vec<_> = captured
        .iter()
        .filter_map(|origin| origin.application.as_deref().map(escaped))
        .collect();
    by.dedup();
    let facts = [
        ("captured on", about.measured_machine()),
        (
            "captured by",
            if by.is_empty() {
                "a program that the file does not name".into()
            } else {
                by.join("; ")
            },
        ),
        ("captured", ran(about)),
        ("method", method),
        (
            "analysed on",
            format!("{}, {}", machine.cpu, machine.kernel),
        ),
        ("tscap", about.tscap.clone()),
        ("command", command(&about.command)),
    ];
    let rows = facts.map(|(name, fact)| vec![name.to_owned(), fact]);
    Table::figures("", &[], rows.into()).words(&[0, 1])
}

/// The reference of the times, in a sentence; several also each in one.
fn times_by(about: &Envelope) -> String {
    let reference = about.reference.iter();
    let said = reference.flat_map(|it| std::iter::once(it.sentence()).chain(it.each()));
    let said: Vec<_> = said.map(|it| escaped(&it).to_string()).collect();
    said.join("; ")
}

fn ran(about: &Envelope) -> String {
    let seconds = number(about.seconds);
    format!("{}, for {seconds} s", time(about.started_ns))
}

/// A time in ns since the epoch.
fn time(ns: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// What the kernel does about the CPU's vulnerabilities.
pub(super) fn mitigations(machine: &Machine) -> Table {
    let each = machine.mitigations.iter();
    Table::figures(
        "Mitigations",
        &["vulnerability", "the kernel's answer"],
        each.map(|(name, answer)| vec![name.clone(), answer.clone()])
            .collect(),
    )
    .words(&[0, 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_results::envelope::Kind;
    use tscap_results::fixtures;

    #[test]
    fn a_capture_is_of_the_machine_that_its_file_names() {
        let mut about = fixtures::about("qos").envelope(Kind::Qos, 1, false);
        about.machine.cpu = "the CPU here".into();
        about.machine.driver = "the driver here".into();
        let facts_of =
            |about: &Envelope| crate::table::markup(&facts(about, "method".into())).into_string();
        assert!(facts_of(&about).contains("the driver here"));
        let origin = |hardware: Option<&str>, os: Option<&str>| Origin {
            hardware: hardware.map(Into::into),
            os: os.map(Into::into),
            application: None,
        };
        for (captured, said) in [
            (vec![], "a machine that the file does not name"),
            (
                vec![origin(None, None)],
                "a machine that the file does not name",
            ),
            (vec![origin(Some("Arm"), Some("Linux 6"))], "Arm, Linux 6"),
            (
                vec![origin(Some("Arm"), None), origin(None, Some("BSD"))],
                "Arm; BSD",
            ),
        ] {
            about.captured = Some(captured);
            let facts = facts_of(&about);
            assert!(facts.contains(said), "{facts}");
            assert!(facts.contains("analysed on"), "{facts}");
            assert!(facts.contains("the CPU here"), "{facts}");
            for foreign in ["driver", "load", "governor", "clock source", "steal"] {
                assert!(!facts.contains(foreign), "{foreign}: {facts}");
            }
        }
    }
}
