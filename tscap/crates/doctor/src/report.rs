//! The report, for machines (JSON) and people.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::check::{Check, Remedy, Verdict};
use tscap_base::text::fold::fold;
use tscap_base::text::numbers::counted;

/// Version of the JSON object.
const VERSION: u32 = 1;
/// Width of the column of verdicts.
const VERDICT_WIDTH: usize = 8;
/// Narrowest column of findings beside verdict and name, else below them.
const NARROWEST: usize = 40;

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
    /// Index of the interface in its network namespace (`ip link` shows it).
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

    /// What is bad, then what is a warning, with `verbose` also what is good; with the
    /// colours of a terminal, and folded to its width in columns where there is one.
    pub fn text(&self, verbose: bool, width: Option<usize>) -> String {
        let machine = &self.machine;
        let mut text = folded(&format!("{}, {}", machine.cpu, machine.kernel), "", width);
        text.push('\n');
        if let Some(interface) = &self.interface {
            let driver = interface.driver.as_deref().unwrap_or("driver unknown");
            let _ = writeln!(text, "interface {} ({driver})", interface.name);
        }
        text.push('\n');
        let order = [Verdict::Bad, Verdict::Warning, Verdict::Good];
        let order = &order[..if verbose { 3 } else { 2 }];
        let of = |verdict| self.checks.iter().filter(move |it| it.verdict == verdict);
        let shown: Vec<_> = order.iter().flat_map(|verdict| of(*verdict)).collect();
        let id_width = shown.iter().map(|check| check.id.len()).max().unwrap_or(0);
        for check in &shown {
            text += &lines(check, id_width, width);
        }
        if !shown.is_empty() {
            text.push('\n');
        }
        let counts = format!(
            "{} good{}, {}, {} bad{}",
            self.good,
            if verbose { "" } else { " (listed by -v)" },
            counted(self.warnings as u64, "warning"),
            self.bad,
            self.named(Verdict::Bad)
        );
        text + &folded(&counts, "", width) + "\n"
    }

    /// The names of the checks that came out so.
    fn named(&self, verdict: Verdict) -> String {
        let checks = self.checks.iter().filter(|check| check.verdict == verdict);
        let ids: Vec<_> = checks.map(|check| check.id).collect();
        if ids.is_empty() {
            String::new()
        } else {
            format!(": {}", ids.join(", "))
        }
    }
}

/// The lines of a check.
fn lines(check: &Check, id_width: usize, width: Option<usize>) -> String {
    let style = style(check.verdict);
    let (verdict, id) = (name(check.verdict), check.id);
    let beside = VERDICT_WIDTH + id_width + 2;
    let is_narrow = width.is_some_and(|width| width < beside + NARROWEST);
    let (margin, head) = if is_narrow {
        (
            "  ".to_owned(),
            format!("{style}{verdict}{style:#} {id}\n  "),
        )
    } else {
        (
            " ".repeat(beside),
            format!("{style}{verdict:VERDICT_WIDTH$}{style:#} {id:id_width$} "),
        )
    };
    let dim = Style::new().dimmed();
    let found = folded(&check.found, &margin, width);
    let why = folded(check.why, &margin, width);
    let mut text = format!("{head}{found}\n{margin}{dim}{why}{dim:#}\n");
    let _ = match &check.remedy {
        // Lines that a shell takes as one.
        Some(Remedy::Fix(command)) => {
            let room = width.map(|width| width - 2);
            let command = folded(&format!("fix: {command}"), &margin, room);
            writeln!(text, "{margin}{}", command.replace('\n', " \\\n"))
        }
        Some(Remedy::Advice(words)) => {
            let words = folded(&format!("advice: {words}"), &margin, width);
            writeln!(text, "{margin}{words}")
        }
        None => Ok(()),
    };
    text
}

/// Text that begins behind `margin`, in lines of the width, each but the first after it.
fn folded(text: &str, margin: &str, width: Option<usize>) -> String {
    fold(text, margin.len(), width).join(&format!("\n{margin}"))
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
    use crate::check::{Topic, advice, fix};

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

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn people_get_a_table() {
        let report = report(vec![
            RPS.good("off"),
            RPS.warning("on", advice("turn it off")),
            LINK.bad("down", fix("ip link set dev eth0 up")),
        ]);
        assert!(report.is_bad());
        let text = report.text(true, None);
        assert!(text.contains("\x1b["), "colours");
        assert_eq!(
            plain(&text),
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
        let text = plain(&report.text(false, None));
        assert!(!text.contains("good     "), "{text}");
        assert!(
            text.ends_with("\n1 good (listed by -v), 1 warning, 1 bad: link\n"),
            "{text}"
        );
    }

    #[test]
    fn lines_fit_a_terminal() {
        let report = report(vec![
            RPS.warning("on, and many words that do not fit", advice("turn it off")),
            LINK.bad(
                "down",
                fix(
                    "ip link set dev eth0 up && ip link set dev eth1 up && ip link set dev eth2 up",
                ),
            ),
        ]);
        for width in 40..200 {
            let text = plain(&report.text(false, Some(width)));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}:\n{text}");
            assert!(text.find("down") < text.find("on, and"), "{text}");
            let command = text
                .split_once("fix: ")
                .unwrap()
                .1
                .split("\nwarning")
                .next();
            let command = command.unwrap().replace("\\\n", "");
            let words: Vec<_> = command.split_whitespace().collect();
            assert!(
                words.join(" ").starts_with("ip link set dev eth0 up && ip"),
                "{text}"
            );
            assert!(words.join(" ").ends_with("dev eth2 up"), "{text}");
        }
        let text = plain(&report.text(false, Some(40)));
        assert!(text.contains("\nbad link\n  down\n"), "{text}");
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
