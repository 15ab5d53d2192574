//! A capture by this tscap in a process of its own, as a user would run it.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::pair::Pair;
use super::stop::Stop;
use crate::clock::StampSource;

/// It ends by itself after so many seconds, should we be killed.
const LONGEST_S: &str = "60";
/// Longest wait for its beginning, and for its end.
const LIMIT: Duration = Duration::from_secs(20);
/// Its rings are short, so that a burst is many of them: each holds 10,922 blocks
/// of frames of 64 bytes.
const RING_SIZE: &str = "1M";

/// A capture that has begun. Killed on drop.
#[derive(Debug)]
pub struct Capturing {
    child: Child,
    stop: Arc<Stop>,
    lines: Receiver<io::Result<String>>,
}

impl Capturing {
    /// Captures at the receiving end, into nothing, and waits until it is ready.
    pub fn start(
        tscap: &Path,
        pair: &Pair,
        source: StampSource,
        stop: &Arc<Stop>,
    ) -> io::Result<Self> {
        let mut command = Command::new(tscap);
        command.args(["capture", "--json", "-w", "/dev/null", "-s", "96"]);
        command.args(["--ring-size", RING_SIZE, "--duration", LONGEST_S]);
        command.args(["-i", &pair.rx.name, "--clock", source.name()]);
        let mut capturing = pair.rx_netns.within(|| Self::spawn(&mut command, stop))?;
        capturing.wait_for("ready", LIMIT)?;
        Ok(capturing)
    }

    /// Out of reach of a terminal's Ctrl-C, which is for us: we end it.
    fn spawn(command: &mut Command, stop: &Arc<Stop>) -> io::Result<Self> {
        command.process_group(0).stdin(Stdio::null());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        stop.set_child(Some(Pid::from_raw(child.id().cast_signed())));
        let stdout = child.stdout.take();
        let (line, lines) = channel();
        let capturing = Self {
            child,
            stop: Arc::clone(stop),
            lines,
        };
        let stdout = stdout.ok_or_else(|| io::Error::other("no standard output"))?;
        // Ends with the child.
        std::thread::Builder::new().spawn(move || {
            let mut all = BufReader::new(stdout).lines();
            while all.next().is_some_and(|read| line.send(read).is_ok()) {}
        })?;
        Ok(capturing)
    }

    /// Ends it; returns the frames that it wrote.
    pub fn finish(mut self) -> io::Result<u64> {
        kill(
            Pid::from_raw(self.child.id().cast_signed()),
            Signal::SIGTERM,
        )?;
        let summary = self.wait_for("summary", LIMIT)?;
        // Its end: what it attached is gone then.
        let deadline = Instant::now() + LIMIT;
        while self.line(deadline)?.is_some() {}
        summary["written"]
            .as_u64()
            .ok_or_else(|| io::Error::other("a summary without a count"))
    }

    fn wait_for(&mut self, event: &str, limit: Duration) -> io::Result<Value> {
        let deadline = Instant::now() + limit;
        while let Some(line) = self.line(deadline)? {
            let value: Value = serde_json::from_str(&line)?;
            if value["event"] == event {
                return Ok(value);
            }
        }
        let mut why = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut why)?;
        }
        let why = why.trim_end();
        Err(io::Error::other(format!(
            "the capture ended before its {event}: {why}"
        )))
    }

    /// The next line; `None` after the last one.
    fn line(&self, deadline: Instant) -> io::Result<Option<String>> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => line.map(Some),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the capture did not answer in time",
            )),
        }
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // Both fail for a child that has ended: fine.
        let _ = self.child.kill();
        self.stop.set_child(None);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Capturing {
        let mut command = Command::new("sh");
        Capturing::spawn(command.args(["-c", script]), &Arc::default()).expect("start sh")
    }

    #[test]
    fn an_early_end_is_explained() {
        let mut capture = sh("echo '{\"event\": \"other\"}'; echo no memory >&2; exit 1");
        let error = capture.wait_for("ready", LIMIT).unwrap_err().to_string();
        assert_eq!(error, "the capture ended before its ready: no memory");
    }

    #[test]
    fn no_answer_is_not_waited_for() {
        let mut capture = sh("exec sleep 60");
        let limit = Duration::from_millis(1);
        let error = capture.wait_for("ready", limit).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_signal_to_us_is_not_one_to_it() {
        let capture = sh("exec sleep 60");
        let pid = Pid::from_raw(capture.child.id().cast_signed());
        let group = nix::unistd::getpgid(Some(pid)).unwrap();
        assert_ne!(group, nix::unistd::getpgrp());
    }

    #[test]
    fn what_was_written_is_told() {
        let script = "trap 'echo {\\\"event\\\": \\\"summary\\\", \\\"written\\\": 7}; exit' TERM
            echo '{\"event\": \"ready\"}'
            while :; do sleep 0.01; done";
        let mut capture = sh(script);
        capture.wait_for("ready", LIMIT).unwrap();
        assert_eq!(capture.finish().unwrap(), 7);
    }
}
