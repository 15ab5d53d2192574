//! A capture by this tscap in a process of its own, as a user would run it.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::pair::Pair;
use crate::clock::StampSource;

/// It ends by itself after so many seconds, should we be killed.
const LONGEST_S: &str = "60";

/// A capture that has begun. Killed on drop.
#[derive(Debug)]
pub struct Capturing {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Capturing {
    /// Captures at the receiving end, into nothing, and waits until it is ready.
    pub fn start(tscap: &Path, pair: &Pair, source: StampSource) -> io::Result<Self> {
        let mut child = pair.rx_netns.within(|| {
            let mut command = Command::new(tscap);
            command.args(["capture", "--json", "-w", "/dev/null", "-s", "96"]);
            command.args(["--ring-size", "16M", "--duration", LONGEST_S]);
            command.args(["-i", &pair.rx.name, "--clock", source.name()]);
            command.stdin(Stdio::null()).stderr(Stdio::null());
            command.stdout(Stdio::piped()).spawn()
        })?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| io::Error::other("no standard output"))?;
        let mut capturing = Self {
            child,
            lines: BufReader::new(stdout),
        };
        capturing.wait_for("ready")?;
        Ok(capturing)
    }

    /// Ends it; returns the frames that it wrote.
    pub fn finish(mut self) -> io::Result<u64> {
        let pid = i32::try_from(self.child.id()).map_err(io::Error::other)?;
        kill(Pid::from_raw(pid), Signal::SIGINT)?;
        let summary = self.wait_for("summary")?;
        self.child.wait()?;
        summary["written"]
            .as_u64()
            .ok_or_else(|| io::Error::other("a summary without a count"))
    }

    fn wait_for(&mut self, event: &str) -> io::Result<Value> {
        let mut line = String::new();
        while self.lines.read_line(&mut line)? > 0 {
            let value: Value = serde_json::from_str(&line)?;
            if value["event"] == event {
                return Ok(value);
            }
            line.clear();
        }
        Err(io::Error::other(format!(
            "the capture ended before it was {event}"
        )))
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // Both fail for a child that has been waited for: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
