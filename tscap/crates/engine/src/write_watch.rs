//! Whether a thread that writes gets on, and how a write that hangs is ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Of the writes to one output after the other.
#[derive(Debug, Default)]
pub struct WriteWatch {
    done: AtomicU64,
    is_aborted: AtomicBool,
    is_waiting_over: AtomicBool,
}

impl WriteWatch {
    /// Writes that have returned: the output hangs while this stays as it is.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends the writing: a write that a signal interrupts is not continued, and frames
    /// are not written any more, but accounted for.
    pub fn abort(&self) {
        self.is_aborted.store(true, Ordering::Relaxed);
    }

    /// Whether the writing was ended.
    pub fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Relaxed)
    }

    /// Ends the waiting for the disk: whether it has what was written is not known then.
    pub fn end_waiting(&self) {
        self.is_waiting_over.store(true, Ordering::Relaxed);
    }

    /// Whether the disk is not waited for any more.
    pub fn is_waiting_over(&self) -> bool {
        self.is_waiting_over.load(Ordering::Relaxed) || self.is_aborted()
    }

    pub(super) fn wrote(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}
