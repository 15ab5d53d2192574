//! The writers of a capture: converter threads, each with some of the rings and an output of
//! its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::plan::Target;
use tscap_clock::MonoNs;
use tscap_engine::{Finished, PtpClock, Recalibration, Shared};
use tscap_file::accounting::{Directed, Written};
use tscap_file::pcapng::InterfaceInfo;
use tscap_programs::hook::Shares;

/// A converter, and where it writes.
pub(super) struct Writer {
    pub target: Target,
    /// How the output is written.
    pub io: &'static str,
    /// The CPU that it is pinned to.
    pub cpu: u32,
    pub shared: Arc<Shared>,
    /// Until it is waited for.
    pub thread: Option<JoinHandle<Finished>>,
}

/// All of them. They are asked to end when this is dropped.
pub(super) struct Writers {
    pub shares: Shares,
    pub each: Vec<Writer>,
}

impl Writers {
    pub fn new(shares: Shares) -> Self {
        Self {
            shares,
            each: Vec::new(),
        }
    }

    pub fn wake(&self) {
        for writer in &self.each {
            writer.wake();
        }
    }

    /// Asks them to drain what is left and end; the programs must be detached already.
    pub fn request_stop(&self) {
        for writer in &self.each {
            writer.shared.request_stop();
            writer.wake();
        }
    }

    /// Before programs are attached to an interface with this number.
    pub fn announce(&self, number: u32) {
        for writer in &self.each {
            writer.shared.announce(number);
        }
    }

    /// What the files are to say of the interface that was announced, and the clock of its
    /// hardware stamps.
    pub fn describe(&self, interface: &InterfaceInfo, stamps_by: Option<&Arc<PtpClock>>) {
        for writer in &self.each {
            writer.shared.stamps_by(stamps_by.cloned());
            writer.shared.describe(interface.clone());
        }
    }

    /// Has them go on by these offsets of the rings' stamps.
    pub fn recalibrate(&self, found: &Recalibration) {
        for (index, writer) in self.each.iter().enumerate() {
            let of_writer = Recalibration {
                offsets: found.offsets[self.shares.rings(index)].to_vec(),
                ..*found
            };
            if let Ok(mut shared) = writer.shared.recalibrated.lock() {
                *shared = Some(of_writer);
            }
        }
    }

    /// Asks each for all that was captured before now, and for the next file.
    pub fn request_next_file(&self) {
        let now = MonoNs::now();
        for writer in &self.each {
            writer.shared.request_next_file(now);
            writer.wake();
        }
    }

    /// Frames written so far.
    pub fn written(&self) -> u64 {
        let written = self.each.iter().map(|it| &it.shared.written);
        written.map(|it| it.load(Ordering::Relaxed)).sum()
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        let bytes = self.each.iter().map(|it| &it.shared.bytes);
        bytes.map(|it| it.load(Ordering::Relaxed)).sum()
    }

    /// Fullest that a ring was found since the last call, 0 to 1.
    pub fn take_ring_fill(&self) -> f64 {
        let fills = self.each.iter().map(|Writer { shared, .. }| {
            let peak = shared.peak_fill.swap(0, Ordering::Relaxed);
            peak as f64 / shared.ring_bytes.load(Ordering::Relaxed).max(1) as f64
        });
        fills.fold(0.0, f64::max)
    }

    /// Greatest error of a stamp against the host's clock, ns.
    pub fn host_bound_ns(&self) -> u64 {
        let bounds = self.each.iter().map(|it| &it.shared.host_bound_ns);
        let bounds = bounds.map(|it| it.load(Ordering::Relaxed));
        bounds.max().unwrap_or(0)
    }

    /// What became of the frames of each interface, as of the latest tenth of a second.
    pub fn counts(&self) -> Vec<Directed<Written>> {
        let counts = self.each.iter().map(|it| it.shared.counts.lock());
        sum(counts.flatten().map(|counts| counts.clone()))
    }
}

impl Writer {
    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.request_stop();
    }
}

/// The sums, interface by interface. A writer may not know the last ones yet.
pub(super) fn sum(counts: impl Iterator<Item = Vec<Directed<Written>>>) -> Vec<Directed<Written>> {
    let mut sum = Vec::new();
    for counts in counts {
        sum.resize(counts.len().max(sum.len()), Directed::default());
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sum
}
