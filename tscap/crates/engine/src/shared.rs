//! What the converter thread and the control task tell each other.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{PtpClock, WriteWatch};
use tscap_clock::MonoNs;
use tscap_file::accounting::{Directed, Observed, Written};
use tscap_file::pcapng::InterfaceInfo;

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
    /// What became of the frames of each interface, as of the latest second.
    pub counts: Mutex<Vec<Directed<Written>>>,
    pub(super) drains: AtomicU64,
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
    joining: Joining,
    /// When the next file was asked for, by CLOCK_MONOTONIC; 0 if it was not.
    next_file: AtomicU64,
    /// By interface, the clock of its hardware stamps, if it has one.
    ptp_clocks: Mutex<Vec<Option<Arc<PtpClock>>>>,
}

/// Interfaces that join a capture that runs.
#[derive(Debug, Default)]
struct Joining {
    /// Interfaces so far, also those whose descriptions are to come.
    announced: AtomicU32,
    /// Descriptions, until the converter has taken them.
    described: Mutex<Vec<InterfaceInfo>>,
}

impl Shared {
    /// Asks the converter to drain what is left and end; the programs must be
    /// detached already.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Asks the converter to write all that was captured before now, and to begin the next file
    /// where there are several.
    pub fn request_next_file(&self, now: MonoNs) {
        self.next_file.store(now.0, Ordering::Release);
    }

    /// When that was asked for since the last call.
    pub(super) fn take_next_file(&self) -> Option<MonoNs> {
        // Each drain looks.
        if self.next_file.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let asked = self.next_file.swap(0, Ordering::AcqRel);
        (asked > 0).then_some(MonoNs(asked))
    }

    /// A number that grows while the converter gets on: it hangs while this stays as it is
    /// for longer than a drain without a write takes.
    pub fn heartbeat(&self) -> u64 {
        self.drains.load(Ordering::Relaxed) + self.writes.done()
    }

    /// Before programs are attached to an interface with this number: its blocks wait in
    /// the rings until it is described.
    pub fn announce(&self, number: u32) {
        let announced = &self.joining.announced;
        announced.store(number + 1, Ordering::Release);
    }

    /// What the file is to say of the interface that was announced.
    pub fn describe(&self, interface: InterfaceInfo) {
        self.joining.described().push(interface);
    }

    /// Which clock the next interface has its hardware stamps by: before it is described.
    pub fn stamps_by(&self, clock: Option<Arc<PtpClock>>) {
        let clocks = self.ptp_clocks.lock();
        clocks
            .unwrap_or_else(|broken| broken.into_inner())
            .push(clock);
    }

    /// The clocks of the interfaces from number `from` on.
    pub(super) fn ptp_clocks(&self, from: usize) -> Vec<Option<Arc<PtpClock>>> {
        let clocks = self.ptp_clocks.lock();
        let clocks = clocks.unwrap_or_else(|broken| broken.into_inner());
        clocks.get(from..).unwrap_or_default().to_vec()
    }

    /// How many interfaces blocks can be of.
    pub(super) fn announced(&self) -> u32 {
        self.joining.announced.load(Ordering::Acquire)
    }

    /// The descriptions since the last call.
    pub(super) fn take_described(&self) -> Vec<InterfaceInfo> {
        std::mem::take(&mut *self.joining.described())
    }

    pub(super) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl Joining {
    fn described(&self) -> MutexGuard<'_, Vec<InterfaceInfo>> {
        // A panic elsewhere leaves a list as it was.
        self.described
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}
