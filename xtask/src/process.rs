//! Children with a deadline, which do not outlive us.

use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::interrupt;

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Looks until `condition` holds, for at most `limit`; `what` is waited for.
pub fn wait_until(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + limit;
    while !condition()? {
        interrupt::check()?;
        if Instant::now() > deadline {
            bail!("{what}: nothing within {} s", limit.as_secs());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// A child that is killed, if it still runs, when this is dropped.
pub struct Running {
    name: &'static str,
    /// The child itself, for its pipes.
    pub child: Child,
}

impl Running {
    /// Takes charge of a child; `name` is for errors.
    pub fn new(name: &'static str, child: Child) -> Self {
        Self { name, child }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).context("a process id above 2^31")?;
        kill(Pid::from_raw(pid), signal)
            .with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Waits for it to end, for at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let mut status = None;
        let name = self.name;
        let child = &mut self.child;
        wait_until(&format!("waiting for {name} to end"), limit, || {
            status = child
                .try_wait()
                .with_context(|| format!("cannot wait for {name}"))?;
            Ok(status.is_some())
        })?;
        status.with_context(|| format!("{name} has no exit status"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // It may end in between; then there is nothing to kill.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
