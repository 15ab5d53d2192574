//! What the converter thread and the control task tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::WriteWatch;
use crate::capturing::accounting::Observed;

/// What the offsets of the rings' stamps were found to be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalibration {
    /// By ring, in units of the stamp.
    pub offsets: Vec<i64>,
    /// Greatest error of stamps so far, ns: by how much an offset had moved before
    /// it was noticed.
    pub stamp_error_ns: u64,
}

/// Shared by both.
#[derive(Debug, Default)]
pub struct Shared {
    stop: AtomicBool,
    /// Frames written so far.
    pub written: AtomicU64,
    /// Bytes written so far.
    pub bytes: AtomicU64,
    /// Fullest that a ring was found since the control task last asked, bytes.
    pub peak_fill: AtomicU64,
    /// Length of one ring, bytes.
    pub ring_bytes: AtomicU64,
    /// Greatest error of a stamp against the host's clock, ns.
    pub host_bound_ns: AtomicU64,
    /// New offsets of the rings' stamps, until the converter has taken them.
    pub recalibrated: Mutex<Option<Recalibration>>,
    /// The writes to the output.
    pub writes: Arc<WriteWatch>,
    /// From the control task to the converter.
    pub observed: Mutex<Observed>,
}

impl Shared {
    /// Asks the converter to drain what is left and end; the programs must be
    /// detached already.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
