//! How a measuring thread is told to end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Between the thread that measures and the one that catches signals.
#[derive(Debug, Default)]
pub struct Stop {
    is_asked: AtomicBool,
    /// The capture under way, not waited for yet.
    child: Mutex<Option<Pid>>,
    /// What captures write, if it is to go with us.
    file: Mutex<Option<PathBuf>>,
}

/// It was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("told to end")]
pub struct Stopped;

impl Stop {
    /// Asks for the end; false if that had been asked before.
    pub fn ask(&self) -> bool {
        !self.is_asked.swap(true, Ordering::Relaxed)
    }

    /// Whether to end.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// An error once it is to end.
    ///
    /// # Errors
    /// [`Stopped`], once that was asked for.
    pub fn go_on(&self) -> Result<(), Stopped> {
        if self.is_asked() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    /// Kills the capture under way and removes its file, if there are any: nobody else
    /// will any more.
    pub fn kill_child(&self) {
        if let Some(pid) = *self.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended by itself.
            let _ = kill(pid, Signal::SIGKILL);
        }
        if let Some(file) = self.file().take() {
            // It may have been removed meanwhile.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Names the file to remove.
    pub fn set_file(&self, file: PathBuf) {
        *self.file() = Some(file);
    }

    fn file(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert!(!stop.is_asked() && stop.go_on().is_ok());
        assert!(stop.ask() && stop.is_asked() && !stop.ask());
        assert_eq!(stop.go_on(), Err(Stopped));
    }

    #[test]
    fn the_child_is_killed_and_its_file_removed() {
        let stop = Stop::default();
        stop.kill_child();
        let file = tempfile::NamedTempFile::new().unwrap();
        stop.set_file(file.path().to_owned());
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        stop.set_child(Some(Pid::from_raw(child.id().cast_signed())));
        stop.kill_child();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(!file.path().exists());
    }
}
