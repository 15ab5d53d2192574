//! What tscap said when it ended.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::Deserialize;
use serde_json::Value;
use tscap::Summary;

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
        let lost = summary.outcomes.total();
        assert_eq!(summary.seen, summary.written + lost, "{summary:?}");
        assert!(summary.adds_up, "{summary:?}");
        for interface in &summary.interfaces {
            let lost = interface.outcomes.total();
            assert_eq!(interface.seen, interface.written + lost, "{interface:?}");
        }
        let written: u64 = summary.interfaces.iter().map(|i| i.written).sum();
        assert_eq!(summary.written, written, "{summary:?}");
        summary
    }

    /// The summary as it is: every field of it is read.
    #[track_caller]
    pub fn summary(&self) -> Summary {
        let none = || panic!("no summary:\n{}\n{}", self.stdout, self.stderr);
        let mut end = self.end.clone().unwrap_or_else(none);
        let summary = Summary::deserialize(&end).expect("a summary");
        let said = end.as_object_mut().expect("an object");
        for of_the_event in ["event", "v", "progress_left_out"] {
            said.remove(of_the_event).expect(of_the_event);
        }
        let read = serde_json::to_value(&summary).expect("a summary is JSON");
        assert_eq!(read, end, "the summary as it is read, and as it was said");
        summary
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
