//! What the converter thread and the control task tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{Outcomes, WriteWatch};

/// Counts of one interface that only the control task can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Frames that the program did not record, by reason.
    pub losses: Outcomes,
    /// Frames that the interface itself missed or dropped since the start;
    /// `None` if the kernel has no counters for it.
    pub ifdrop: Option<u64>,
}

/// What the control task last read: it goes into the statistics blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// By interface, in the file's order.
    pub interfaces: Vec<InterfaceCounts>,
    /// The kernel's own bound on CLOCK_REALTIME against UTC, ns; `None` while it
    /// is not synchronised.
    pub utc_bound_ns: Option<u64>,
    /// With `--rx-cpu`: frames that came in on other CPUs.
    pub off_cpu: Option<u64>,
}

impl Observed {
    /// What has been counted since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        for (counts, before) in since.interfaces.iter_mut().zip(&before.interfaces) {
            counts.losses -= before.losses;
            counts.ifdrop = less(counts.ifdrop, before.ifdrop);
        }
        since.off_cpu = less(self.off_cpu, before.off_cpu);
        since
    }
}

fn less(count: Option<u64>, before: Option<u64>) -> Option<u64> {
    count.map(|count| count.saturating_sub(before.unwrap_or(0)))
}

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
