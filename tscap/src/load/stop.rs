//! How a measuring thread is told to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Between the thread that measures and the one that catches signals.
#[derive(Debug, Default)]
pub struct Stop {
    is_asked: AtomicBool,
    /// The capture under way, not waited for yet.
    child: Mutex<Option<Pid>>,
}

impl Stop {
    /// Asks for the end; false if that had been asked before.
    pub fn ask(&self) -> bool {
        !self.is_asked.swap(true, Ordering::Relaxed)
    }

    /// Whether to end.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// Kills the capture under way, if there is one: nobody else will any more.
    pub fn kill_child(&self) {
        if let Some(pid) = *self.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended by itself.
            let _ = kill(pid, Signal::SIGKILL);
        }
    }

    /// Names the child to kill; none before it is waited for.
    pub(super) fn set_child(&self, child: Option<Pid>) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = child;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_the_first_asks() {
        let stop = Stop::default();
        assert!(!stop.is_asked());
        assert!(stop.ask() && stop.is_asked() && !stop.ask());
    }

    #[test]
    fn the_child_is_killed() {
        let stop = Stop::default();
        stop.kill_child();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        stop.set_child(Some(Pid::from_raw(child.id().cast_signed())));
        stop.kill_child();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
