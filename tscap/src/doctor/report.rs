//! The report, for machines (JSON) and people.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::check::{Check, Remedy, Verdict};

/// Version of the JSON object.
const VERSION: u32 = 1;
/// Width of the column of verdicts.
const VERDICT_WIDTH: usize = 8;

/// What was examined.
#[derive(Debug, Serialize)]
pub struct MachineFacts {
    /// Kernel and architecture.
    pub kernel: String,
    /// Model and number of the processors.
    pub cpu: String,
    /// The hypervisor; null where none shows itself.
    pub virtualisation: Option<String>,
}

/// The interface that was examined.
#[derive(Debug, Serialize)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// Its number.
    pub ifindex: u32,
    /// Name of its driver; null if it doesn't say.
    pub driver: Option<String>,
}

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    event: &'static str,
    v: u32,
    machine: MachineFacts,
    interface: Option<InterfaceFacts>,
    good: usize,
    warnings: usize,
    bad: usize,
    checks: Vec<Check>,
}

impl Report {
    /// Counts the checks.
    pub fn new(
        machine: MachineFacts,
        interface: Option<InterfaceFacts>,
        checks: Vec<Check>,
    ) -> Self {
        let count = |verdict| checks.iter().filter(|it| it.verdict == verdict).count();
        Self {
            event: "doctor",
            v: VERSION,
            machine,
            interface,
            good: count(Verdict::Good),
            warnings: count(Verdict::Warning),
            bad: count(Verdict::Bad),
            checks,
        }
    }

    /// Whether a capture would be refused.
    pub fn is_bad(&self) -> bool {
        self.bad > 0
    }

    /// A table with the colours of a terminal.
    pub fn text(&self) -> String {
        let machine = &self.machine;
        let mut text = format!("{}, {}\n", machine.cpu, machine.kernel);
        if let Some(interface) = &self.interface {
            let driver = interface.driver.as_deref().unwrap_or("driver unknown");
            let _ = writeln!(text, "interface {} ({driver})", interface.name);
        }
        text.push('\n');
        let widths = self.checks.iter().map(|check| check.id.len());
        let id_width = widths.max().unwrap_or(0);
        let margin = " ".repeat(VERDICT_WIDTH + id_width + 2);
        let dim = Style::new().dimmed();
        for check in &self.checks {
            let style = style(check.verdict);
            let (verdict, id, found) = (name(check.verdict), check.id, &check.found);
            let _ = writeln!(
                text,
                "{style}{verdict:VERDICT_WIDTH$}{style:#} {id:id_width$} {found}"
            );
            let _ = writeln!(text, "{margin}{dim}{}{dim:#}", check.why);
            let _ = match &check.remedy {
                Some(Remedy::Fix(command)) => writeln!(text, "{margin}fix: {command}"),
                Some(Remedy::Advice(words)) => writeln!(text, "{margin}advice: {words}"),
                None => Ok(()),
            };
        }
        let _ = writeln!(
            text,
            "\n{} good, {}, {} bad{}",
            self.good,
            match self.warnings {
                1 => "1 warning".into(),
                several => format!("{several} warnings"),
            },
            self.bad,
            self.named(Verdict::Bad)
        );
        text
    }

    /// The names of the checks that came out so.
    fn named(&self, verdict: Verdict) -> String {
        let checks = self.checks.iter().filter(|check| check.verdict == verdict);
        let ids: Vec<_> = checks.map(|check| check.id).collect();
        match ids.is_empty() {
            true => String::new(),
            false => format!(": {}", ids.join(", ")),
        }
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Warning => "warning",
        Verdict::Bad => "bad",
    }
}

fn style(verdict: Verdict) -> Style {
    let colour = match verdict {
        Verdict::Good => AnsiColor::Green,
        Verdict::Warning => AnsiColor::Yellow,
        Verdict::Bad => AnsiColor::Red,
    };
    colour.on_default().bold()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::{Topic, advice, fix};

    const LINK: Topic = Topic {
        id: "link",
        why: "It must be up.",
    };
    const RPS: Topic = Topic {
        id: "rps_of_it",
        why: "It leads away.",
    };

    fn report(checks: Vec<Check>) -> Report {
        let machine = MachineFacts {
            kernel: "Linux 6.12".into(),
            cpu: "AMD EPYC, 2 CPUs".into(),
            virtualisation: None,
        };
        let interface = InterfaceFacts {
            name: "eth0".into(),
            ifindex: 2,
            driver: Some("ice".into()),
        };
        Report::new(machine, Some(interface), checks)
    }

    #[test]
    fn people_get_a_table() {
        let report = report(vec![
            LINK.bad("down", fix("ip link set dev eth0 up")),
            RPS.warning("on", advice("turn it off")),
            RPS.good("off"),
        ]);
        assert!(report.is_bad());
        let text = report.text();
        assert!(text.contains("\x1b["), "colours");
        assert_eq!(
            anstream::adapter::strip_str(&text).to_string(),
            "AMD EPYC, 2 CPUs, Linux 6.12\n\
             interface eth0 (ice)\n\
             \n\
             bad      link      down\n\
             \u{20}                  It must be up.\n\
             \u{20}                  fix: ip link set dev eth0 up\n\
             warning  rps_of_it on\n\
             \u{20}                  It leads away.\n\
             \u{20}                  advice: turn it off\n\
             good     rps_of_it off\n\
             \u{20}                  It leads away.\n\
             \n\
             1 good, 1 warning, 1 bad: link\n"
        );
    }

    #[test]
    fn machines_get_one_object() {
        let report = report(vec![LINK.good("up")]);
        assert!(!report.is_bad());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["event"], &json["v"]), (&"doctor".into(), &1.into()));
        assert_eq!(json["interface"]["name"], "eth0");
        assert_eq!(json["machine"]["virtualisation"], serde_json::Value::Null);
        assert_eq!((&json["good"], &json["bad"]), (&1.into(), &0.into()));
        assert_eq!(json["checks"][0]["id"], "link");
    }
}
