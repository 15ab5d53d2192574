//! The figures of each second.

use std::time::Duration;

use serde::Serialize;

use crate::command::console::Console;
use tscap_base::text::numbers::span;
use tscap_delay::Latest;
use tscap_delay::live::LiveSecond;

/// Version of the JSON objects.
const VERSION: u32 = 1;
/// A heading stands before so many lines.
const HEADING_EVERY: u64 = 20;

#[derive(Debug, Serialize)]
pub(super) struct Second {
    /// Since the start, s.
    seconds: f64,
    /// Packets that are remembered.
    remembered: u64,
    passages: Vec<Way>,
}

#[derive(Debug, Serialize)]
struct Way {
    name: String,
    /// By exit; null if no packet was matched there in this second.
    exits: Vec<Option<Latest>>,
}

impl Second {
    /// Of the ways of these names.
    pub fn of(names: &[String], latest: LiveSecond, since: Duration) -> Self {
        let ways = names.iter().zip(latest.ways);
        Self {
            seconds: since.as_secs_f64(),
            remembered: latest.remembered,
            passages: ways
                .map(|(name, exits)| Way {
                    name: name.clone(),
                    exits,
                })
                .collect(),
        }
    }

    fn lines(&self, line: u64) -> Vec<String> {
        let heading = || {
            format!(
                "{:>5} {:>9} {:>8} {:>8} {:>8} {:>8}  {}",
                "s", "matched/s", "min", "median", "p99", "max", "way"
            )
        };
        let mut lines = Vec::new();
        if line.is_multiple_of(HEADING_EVERY) {
            lines.push(heading());
        }
        for way in &self.passages {
            let first = way.exits.first().and_then(Option::as_ref);
            let figures = match first {
                None => format!("{:>9} {:>8} {:>8} {:>8} {:>8}", 0, "-", "-", "-", "-"),
                Some(latest) => format!(
                    "{:>9} {:>8} {:>8} {:>8} {:>8}",
                    latest.n,
                    time(Some(latest.min_ns)),
                    time(latest.p50_ns),
                    time(latest.p99_ns),
                    time(Some(latest.max_ns))
                ),
            };
            lines.push(format!("{:>5.0} {figures}  {}", self.seconds, way.name));
        }
        lines
    }
}

/// In the unit that fits.
fn time(ns: Option<i64>) -> String {
    let sign = |ns: i64| if ns < 0 { "−" } else { "" };
    ns.map_or("-".into(), |ns| {
        sign(ns).to_owned() + &span(ns.unsigned_abs())
    })
}

/// Tells a second: a JSON object, or lines of a table; to nobody who wants quiet.
pub(super) fn tell(console: &mut Console, second: &Second, line: u64) {
    if console.is_json() {
        console.event("delay", VERSION, second);
    } else if !console.is_quiet() {
        for text in second.lines(line) {
            console.say(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_line_for_each_way_and_fits_a_terminal() {
        let latest = Latest {
            n: 1_234_567,
            min_ns: 1_100,
            p50_ns: Some(2_250),
            p99_ns: None,
            max_ns: 52_400_000,
            mean_ns: 2_300.0,
        };
        let second = Second {
            seconds: 7.2,
            remembered: 5,
            passages: vec![
                Way {
                    name: "a → b".into(),
                    exits: vec![Some(latest), None],
                },
                Way {
                    name: "eth0, request to reply".into(),
                    exits: vec![None, None],
                },
            ],
        };
        let lines = second.lines(0);
        assert_eq!(lines.len(), 3);
        let words: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(
            words,
            [
                "7", "1234567", "1.1", "µs", "2.2", "µs", "-", "52.4", "ms", "a", "→", "b"
            ]
        );
        assert!(
            lines.iter().all(|line| line.chars().count() < 80),
            "{lines:?}"
        );
        assert_eq!(second.lines(1).len(), 2);
    }
}
