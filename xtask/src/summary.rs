//! The summary object of `tscap capture --json`, as far as the demo shows it.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};
use serde::Deserialize;

/// What a capture counted.
#[derive(Deserialize)]
pub struct Summary {
    file: String,
    seconds: f64,
    bytes_written: u64,
    /// Frames that entered the XDP program.
    pub seen: u64,
    /// Frames that are in the file.
    pub written: u64,
    outcomes: BTreeMap<String, u64>,
    adds_up: bool,
    clock: Clock,
}

#[derive(Deserialize)]
struct Clock {
    source: String,
    path: String,
    host_bound_ns: u64,
    synchronised: bool,
    utc_bound_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Event {
    event: String,
}

impl Summary {
    /// The summary among the JSON lines that a capture printed.
    pub fn find(lines: &str) -> Result<Self> {
        let is_summary = |line: &&str| {
            serde_json::from_str::<Event>(line).is_ok_and(|event| event.event == "summary")
        };
        let line = lines
            .lines()
            .find(is_summary)
            .context("tscap printed no summary")?;
        serde_json::from_str(line).with_context(|| format!("cannot understand: {line}"))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost: u64 = self.outcomes.values().sum();
        let sum = if self.adds_up {
            "it adds up"
        } else {
            "IT DOES NOT ADD UP"
        };
        writeln!(
            f,
            "file        {}: {} bytes in {:.1} s",
            self.file, self.bytes_written, self.seconds
        )?;
        writeln!(
            f,
            "accounting  {} seen = {} written + {lost} not written: {sum}",
            self.seen, self.written
        )?;
        for (name, count) in self.outcomes.iter().filter(|(_, count)| **count > 0) {
            writeln!(f, "            {count} {name}")?;
        }
        let clock = &self.clock;
        writeln!(
            f,
            "clock       {} by {}: each stamp within {} ns of this machine's clock,",
            clock.source, clock.path, clock.host_bound_ns
        )?;
        match clock.utc_bound_ns.filter(|_| clock.synchronised) {
            Some(bound) => write!(f, "            which is within {bound} ns of UTC"),
            None => write!(f, "            which no time server keeps near UTC"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"event":"ready"}
{"event":"summary","v":1,"file":"out.pcapng","seconds":1.23,"seen":100,"written":99,"bytes_written":12345,"outcomes":{"ring_full":1,"too_long":0},"adds_up":true,"clock":{"source":"ktime","path":"bpf_ktime_get_ns","host_bound_ns":21,"synchronised":false,"utc_bound_ns":null}}
"#;

    #[test]
    fn shows_accounting_and_both_bounds() {
        let text = Summary::find(LINES).unwrap().to_string();
        assert!(
            text.contains("100 seen = 99 written + 1 not written: it adds up"),
            "{text}"
        );
        assert!(text.contains("1 ring_full"), "{text}");
        assert!(!text.contains("too_long"), "{text}");
        assert!(
            text.contains("ktime by bpf_ktime_get_ns: each stamp within 21 ns"),
            "{text}"
        );
        assert!(text.contains("no time server"), "{text}");
    }

    #[test]
    fn output_without_summary_is_an_error() {
        assert!(Summary::find("{\"event\":\"ready\"}\nnot json\n").is_err());
    }
}
