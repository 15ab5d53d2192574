//! What tscap said when it ended.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::Deserialize;
use serde_json::Value;

/// Frames not written, by reason.
pub type Outcomes = BTreeMap<String, u64>;

/// The summary of `--json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    /// Schema version.
    pub v: u32,
    /// The output.
    pub file: String,
    /// With several files.
    pub files: Option<Files>,
    /// Length of the capture.
    pub seconds: f64,
    /// Frames that entered the program.
    pub seen: u64,
    /// Frames in the file.
    pub written: u64,
    /// Length of the file, bytes.
    pub bytes_written: u64,
    /// Frames not in the file.
    pub outcomes: Outcomes,
    /// What tscap says about its own accounting.
    pub adds_up: bool,
    /// The same by interface.
    pub interfaces: Vec<InterfaceSummary>,
    /// The clock.
    pub clock: Clock,
    /// Why it ended.
    pub stopped_by: String,
}

/// Several files in the summary.
#[derive(Clone, Debug, Deserialize)]
pub struct Files {
    /// Files made.
    pub written: u64,
    /// Of these, gone again.
    pub removed: u64,
    /// Frames in those.
    pub frames_removed: u64,
    /// Files of others that were replaced.
    pub replaced: u64,
    /// Longest pause between two files, ns.
    pub longest_cut_ns: u64,
    /// With `-z`.
    pub commands: Option<Commands>,
}

/// What became of the runs of `-z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Commands {
    /// Ended with success.
    pub succeeded: u64,
    /// Failed.
    pub failed: u64,
    /// Not ended.
    pub unfinished: u64,
}

/// One interface in the summary.
#[derive(Clone, Debug, Deserialize)]
pub struct InterfaceSummary {
    /// Name.
    pub name: String,
    /// Index.
    pub ifindex: u32,
    /// "native" or "generic".
    pub xdp_mode: String,
    /// Frames that entered the program.
    pub seen: u64,
    /// Frames in the file.
    pub written: u64,
    /// Frames not in the file.
    pub outcomes: Outcomes,
    /// The interface's own drop counter over the capture, if it has one.
    pub ifdrop: Option<u64>,
}

/// The clock in the summary.
#[derive(Clone, Debug, Deserialize)]
pub struct Clock {
    /// Whether the read was ordered.
    pub ordered: bool,
    /// `ktime` or `tai`.
    pub source: String,
    /// The helper that ran.
    pub path: String,
    /// Stamp against the host's clock, ns.
    pub host_bound_ns: u64,
    /// Whether the kernel calls its clock synchronised.
    pub synchronised: bool,
    /// The host's clock against UTC, ns.
    pub utc_bound_ns: Option<u64>,
    /// Stretches between steps of the clock.
    pub segments: Vec<Value>,
    /// Steps seen.
    pub steps: u64,
    /// Stamps less than the one before on the same CPU.
    pub stamp_decreases: u64,
    /// Frames behind a younger one of another CPU.
    pub late: u64,
    /// How much younger that one was at most, ns.
    pub largest_lateness_ns: u64,
    /// Stamps that a step makes ambiguous.
    pub ambiguous: u64,
}

/// A file that is complete, as it was told.
#[derive(Clone, Debug, Deserialize)]
pub struct File {
    /// Its name.
    #[serde(rename = "file")]
    pub path: PathBuf,
    /// Frames in it.
    pub frames: u64,
    /// Its length.
    pub bytes: u64,
    /// When it began, ns since the epoch.
    pub start_ns: u64,
    /// When the next one began.
    pub end_ns: u64,
}

/// A tscap that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit code, unless a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Standard output, if it was ours.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// What it said last, in JSON.
    pub end: Option<Value>,
}

impl Finished {
    /// What a tscap left; `stdout` if it was ours.
    pub fn new(status: ExitStatus, stdout: Option<String>, stderr: String) -> Self {
        let lines = stdout.as_deref().unwrap_or(&stderr);
        let end = lines.lines().find_map(|line| {
            let value: Value = serde_json::from_str(line).ok()?;
            (value["event"] == "summary").then_some(value)
        });
        let finished = Self {
            code: status.code(),
            signal: status.signal(),
            stdout: stdout.unwrap_or_default(),
            stderr,
            end,
        };
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
        finished
    }

    /// The summary of a capture that succeeded; its accounting has been checked.
    #[track_caller]
    pub fn success(&self) -> Summary {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.accounted()
    }

    /// The summary, whatever the exit code; its accounting has been checked.
    #[track_caller]
    pub fn accounted(&self) -> Summary {
        let summary = self.summary();
        let lost: u64 = summary.outcomes.values().sum();
        assert_eq!(summary.seen, summary.written + lost, "{summary:?}");
        assert!(summary.adds_up, "{summary:?}");
        for interface in &summary.interfaces {
            let lost: u64 = interface.outcomes.values().sum();
            assert_eq!(interface.seen, interface.written + lost, "{interface:?}");
        }
        let written: u64 = summary.interfaces.iter().map(|i| i.written).sum();
        assert_eq!(summary.written, written, "{summary:?}");
        summary
    }

    /// The summary as it is.
    #[track_caller]
    pub fn summary(&self) -> Summary {
        let none = || panic!("no summary:\n{}\n{}", self.stdout, self.stderr);
        let end = self.end.clone().unwrap_or_else(none);
        serde_json::from_value(end).expect("a summary has all its fields")
    }

    /// Files in the order in which they were closed.
    pub fn files(&self) -> Vec<File> {
        let events = self.events("file").into_iter();
        let files = events.map(serde_json::from_value);
        files
            .collect::<Result<_, _>>()
            .expect("files as they are told")
    }

    /// JSON lines with `"event": <name>` on standard output.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let values = self.stdout.lines().map(|line| {
            serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{line:?}: {e}"))
        });
        values.filter(|value| value["event"] == name).collect()
    }

    /// Panics unless it ended with exit code `code` and an error that has each
    /// of `parts` in it, in whatever case, and says what to do.
    #[track_caller]
    pub fn failure(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        let from = self
            .stderr
            .find("tscap: ")
            .unwrap_or_else(|| panic!("{:?}", self.stderr));
        let error = &self.stderr[from..];
        for part in parts {
            let found = error.to_lowercase().contains(&part.to_lowercase());
            assert!(found, "{part:?} is not in the error:\n{error}");
        }
        assert!(
            error.lines().any(|line| line.starts_with("hint: ")),
            "no hint:\n{error}"
        );
    }
}
