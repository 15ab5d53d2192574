//! The live view: what each interface takes in and sends, by outcome, on a terminal.

use std::collections::BTreeMap;

use crate::command::terminal;
use tscap_base::text::numbers::{counted, grouped};
use tscap_capture::{InterfaceSummary, Progress};

/// Columns for names; of longer ones the middle is left out.
const NAME: usize = 24;
/// Stands for what is left out.
const LEFT_OUT: char = '…';
/// Columns for a number.
const NUMBER: usize = 12;
/// Lines that are no interface's: the head, two below, and one that stays free.
const OTHER_LINES: usize = 4;

/// What was shown last, by which rates are known.
#[derive(Debug, Default)]
pub(super) struct View {
    seconds: f64,
    /// Frames in and out by the index of the interface.
    seen: BTreeMap<usize, [u64; 2]>,
}

/// An interface as it is shown.
struct Row {
    name: String,
    /// Frames a second, in and out.
    rates: [u64; 2],
    frames: u64,
    outcomes: String,
}

impl View {
    /// The lines for a terminal of so many columns and lines.
    pub fn lines(&mut self, now: &Progress, (width, height): (usize, usize)) -> Vec<String> {
        let since = (now.seconds - self.seconds).max(1e-3);
        let interfaces = now.account.interfaces.iter().enumerate();
        let mut rows: Vec<_> = interfaces
            .map(|(index, interface)| self.row(index, interface, since))
            .collect();
        self.seconds = now.seconds;
        // The busiest first; those alike stay where they are.
        rows.sort_by_key(|row| std::cmp::Reverse((row.rates.iter().sum::<u64>(), row.frames)));
        let most = height.saturating_sub(OTHER_LINES).max(1);
        let more = rows.len().saturating_sub(most);
        let head = format!(
            "{:<NAME$} {:>NUMBER$} {:>NUMBER$} {:>NUMBER$}  not captured",
            "interface", "in/s", "out/s", "frames"
        );
        let mut lines = vec![head];
        lines.extend(rows.iter().take(most).map(Row::line));
        let more = match more {
            0 => String::new(),
            more => format!("and {more} more; "),
        };
        lines.push(format!("{more}{}", whole(now)));
        lines.push("nothing is kept: -w FILE writes a file; q ends".into());
        lines
            .iter()
            .map(|line| terminal::cut(line, width))
            .collect()
    }

    fn row(&mut self, index: usize, interface: &InterfaceSummary, since: f64) -> Row {
        let seen = ["in", "out"].map(|direction| {
            let mut all = interface.directions.iter();
            let found = all.find(|it| it.direction == direction);
            found.map_or(0, |it| it.totals.seen)
        });
        let before = self.seen.insert(index, seen).unwrap_or_default();
        let rate = |of: usize| (seen[of].saturating_sub(before[of]) as f64 / since) as u64;
        let outcomes = interface.outcomes.entries().filter(|(_, count)| *count > 0);
        let outcomes =
            outcomes.map(|(outcome, count)| format!("{} {}", outcome.name, grouped(count)));
        Row {
            name: name(interface),
            rates: [rate(0), rate(1)],
            frames: interface.seen,
            outcomes: outcomes.collect::<Vec<_>>().join(", "),
        }
    }
}

impl Row {
    fn line(&self) -> String {
        let name = &self.name;
        let [received, sent] = self.rates.map(grouped);
        let line = format!(
            "{name:<NAME$} {received:>NUMBER$} {sent:>NUMBER$} {:>NUMBER$}  {}",
            grouped(self.frames),
            self.outcomes
        );
        line.trim_end().to_owned()
    }
}

/// An interface's name with that of its namespace: "eth0@web". The end of the namespace's
/// tells it from others more often than its beginning.
fn name(interface: &InterfaceSummary) -> String {
    let Some(namespace) = &interface.namespace else {
        return shortened(&interface.name, NAME / 2);
    };
    let kinds = ["network namespace ", "container ", "pod "];
    let place = kinds.iter().find_map(|kind| namespace.strip_prefix(kind));
    let interface = format!("{}@", interface.name);
    let before = interface.chars().count();
    shortened(
        &(interface + place.unwrap_or(namespace)),
        before.min(NAME / 2),
    )
}

/// A name of at most [`NAME`] columns; of a longer one the first `before` and the last ones.
fn shortened(name: &str, before: usize) -> String {
    let length = name.chars().count();
    if length <= NAME {
        return name.to_owned();
    }
    let mut shortened: String = name.chars().take(before).collect();
    shortened.push(LEFT_OUT);
    shortened.extend(name.chars().skip(length - (NAME - 1 - before)));
    shortened
}

/// The capture as a whole: the sums of the rows, which are of one moment.
fn whole(now: &Progress) -> String {
    let seen = now.account.interfaces.iter().map(|it| it.seen).sum();
    let stack = if now.tap { "stack sees nothing, " } else { "" };
    format!(
        "{:.0} s, {}, {}, {stack}fullest ring {:.0} %, clock ±{} ns",
        now.seconds,
        counted(seen, "frame"),
        counted(now.drops, "drop"),
        now.ring_fill * 100.0,
        now.host_bound_ns
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_capture::{Account, DirectionSummary};
    use tscap_file::accounting::{Directed, Outcome, Outcomes, Totals};

    fn interface(name: &str, received: u64, sent: u64) -> InterfaceSummary {
        let direction = |name: &str, seen| DirectionSummary {
            direction: name.into(),
            hook: None,
            totals: Totals {
                seen,
                ..Totals::default()
            },
            interface: None,
        };
        InterfaceSummary {
            name: name.into(),
            namespace: None,
            ifindex: 1,
            seen: received + sent,
            written: received + sent,
            outcomes: Outcomes::default(),
            directions: vec![direction("in", received), direction("out", sent)],
            ifdrop: None,
            hardware: None,
        }
    }

    fn progress(seconds: f64, interfaces: Vec<InterfaceSummary>) -> Progress {
        Progress {
            seconds,
            // Some are on their way.
            seen: interfaces.iter().map(|it| it.seen + 5).sum(),
            written: 0,
            bytes: 0,
            drops: 3,
            rate: 0.0,
            ring_fill: 0.126,
            host_bound_ns: 1,
            tap: false,
            account: Account {
                seen: Directed::default(),
                interfaces,
                utc_bound_ns: None,
            },
        }
    }

    #[test]
    fn the_busiest_come_first_with_their_rates_and_outcomes() {
        let mut view = View::default();
        let before = vec![interface("lo", 10, 0), interface("eth0", 0, 0)];
        view.lines(&progress(1.0, before), (80, 24));
        let mut eth0 = interface("eth0", 4000, 2000);
        eth0.outcomes[Outcome::RingFull] = 7;
        let lines = view.lines(&progress(3.0, vec![interface("lo", 10, 0), eth0]), (80, 24));
        assert_eq!(
            lines,
            [
                "interface                        in/s        out/s       frames  not captured",
                "eth0                            2,000        1,000        6,000  ring_full 7",
                "lo                                  0            0           10",
                "3 s, 6,010 frames, 3 drops, fullest ring 13 %, clock ±1 ns",
                "nothing is kept: -w FILE writes a file; q ends",
            ]
        );
    }

    #[test]
    fn it_says_that_the_stack_sees_nothing() {
        let mut now = progress(3.0, vec![interface("eth0", 6, 0)]);
        let whole = |now: &Progress| View::default().lines(now, (80, 24)).swap_remove(2);
        assert!(!whole(&now).contains("stack"), "{}", whole(&now));
        now.tap = true;
        let expected = "3 s, 6 frames, 3 drops, stack sees nothing, fullest ring 13 %";
        assert!(whole(&now).starts_with(expected), "{}", whole(&now));
    }

    #[test]
    fn more_than_fit_are_counted() {
        let many = (0..30).map(|number| interface(&format!("veth{number}"), 30 - number, 0));
        let lines = View::default().lines(&progress(1.0, many.collect()), (40, 10));
        assert_eq!(lines.len(), 9);
        assert!(lines[1].starts_with("veth0 "), "{lines:?}");
        assert!(
            lines[7].starts_with("and 24 more; 1 s, 465 frames"),
            "{lines:?}"
        );
        assert!(
            lines.iter().all(|line| line.chars().count() < 40),
            "{lines:?}"
        );
    }

    #[test]
    fn a_name_keeps_what_tells_it_from_others() {
        let of = |name: &str, namespace: Option<&str>| {
            let mut interface = interface(name, 0, 0);
            interface.namespace = namespace.map(str::to_owned);
            super::name(&interface)
        };
        assert_eq!(of("eth0", None), "eth0");
        assert_eq!(of("eth0", Some("network namespace cont")), "eth0@cont");
        assert_eq!(of("eth0", Some("container web")), "eth0@web");
        assert_eq!(of("eth0", Some("pod shop/web")), "eth0@shop/web");
        let one = of("eth0", Some("pod production/frontend-5f6c9b7d-x2x7k"));
        assert_eq!(one, "eth0@…end-5f6c9b7d-x2x7k");
        let other = of("eth0", Some("pod production/frontend-5f6c9b7d-zz9pl"));
        assert_ne!(one, other);
        assert_eq!(one.chars().count(), NAME);
        let long = of("a-bridge-of-many-names-0123456789", None);
        assert_eq!(long, "a-bridge-of-…-0123456789");
    }
}
