//! A `tscap capture` run as a child: started, waited for, stopped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::process::{Running, wait_until};
use crate::sh;
use crate::summary::Summary;

/// Start to readiness: loading and attaching take well under a second; the rest
/// is for a busy machine.
const READY: Duration = Duration::from_secs(15);
/// Signal to exit.
const STOP: Duration = Duration::from_secs(10);

/// A capture that is ready.
pub struct Capture {
    tscap: Running,
    stdout: JoinHandle<String>,
}

impl Capture {
    /// Starts `command`, a capture with `--json`, and waits until it is ready; its
    /// messages go to our standard error.
    pub fn start(command: &mut Command) -> Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        eprintln!("+ {}", sh::line(command));
        let mut child = command.spawn().map_err(|e| sh::not_started(command, &e))?;

        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let tscap = Running::new("tscap", child);
        let mut stdout = stdout.context("tscap has no standard output")?;
        let stderr = stderr.context("tscap has no standard error")?;
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            // What was read before an error is what there is to show.
            let _ = stdout.read_to_string(&mut text);
            text
        });
        let ready = watch_for_readiness(stderr);
        let mut outcome = None;
        wait_until("waiting for tscap to be ready", READY, || {
            match ready.recv_timeout(Duration::from_millis(1)) {
                Ok(()) => outcome = Some(true),
                Err(RecvTimeoutError::Disconnected) => outcome = Some(false),
                Err(RecvTimeoutError::Timeout) => {}
            }
            Ok(outcome.is_some())
        })?;
        let mut capture = Self { tscap, stdout };
        if outcome == Some(false) {
            bail!(
                "tscap ended before it was ready: {}",
                capture.tscap.wait(STOP)?
            );
        }
        Ok(capture)
    }

    /// Stops the capture and gives back its summary.
    pub fn stop(mut self) -> Result<Summary> {
        self.tscap.signal(Signal::SIGTERM)?;
        let status = self.tscap.wait(STOP)?;
        if !status.success() {
            bail!("tscap failed: {status}");
        }
        let text = match self.stdout.join() {
            Ok(text) => text,
            Err(_) => bail!("the thread that reads tscap's output panicked"),
        };
        Summary::find(&text)
    }
}

/// Passes the lines of `stderr` on; the receiver gets a message at the line
/// that says `ready: `, and is disconnected when the lines end.
fn watch_for_readiness(stderr: impl Read + Send + 'static) -> Receiver<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            eprintln!("{line}");
            if line.starts_with("ready: ") {
                // Nobody may be waiting any more.
                let _ = sender.send(());
            }
        }
    });
    receiver
}
