//! The drain loop: rings in, file out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc::UnboundedSender;

use super::batch::{Batch, Frames};
use super::finished::Finished;
use super::pieces::Pieces;
use super::rings::Rings;
use super::{Idle, Output, OutputError, Recalibration, Shared};
use crate::clock::{Conversion, MonoNs, Observation, Reference, Tracker};
use crate::pcapng::{FileWriter, WriteError};
use crate::ring::{Consumer, CorruptBlock};

/// Statistics go into the file this often.
const STATISTICS_EVERY_NS: u64 = 10_000_000_000;

/// What the converter tells the control task.
#[derive(Debug)]
pub enum Event {
    /// As many frames as asked for were written.
    CountReached,
    /// The other end of the pipe is gone.
    ReaderGone,
    /// The output can't be written any more.
    WriteFailed(std::io::Error),
    /// A ring holds something that is no block.
    Corrupt(CorruptBlock),
    /// The system clock was set.
    Stepped {
        /// By how much, ns.
        step_ns: i64,
    },
}

/// Finds the interface's index in the file for the kernel's `ifindex`, also
/// after the interface has been renumbered.
pub type Resolve = Box<dyn FnMut(u32) -> Option<u32> + Send>;

/// The converter: what its thread owns.
pub struct Converter<R> {
    pub(super) rings: Rings,
    reference: R,
    tracker: Tracker,
    file: FileWriter,
    pub(super) pieces: Pieces,
    shared: Arc<Shared>,
    next_statistics: MonoNs,
}

impl<R: Reference> Converter<R> {
    /// Takes over the rings and the output, to which `file` has written its
    /// headers.
    #[allow(clippy::too_many_arguments, reason = "called once, by the command")]
    pub fn new(
        consumers: Vec<Consumer>,
        reference: R,
        tracker: Tracker,
        output: Output,
        file: FileWriter,
        frames: Frames,
        resolve: Resolve,
        shared: Arc<Shared>,
        events: UnboundedSender<Event>,
    ) -> Self {
        let batch = Batch::new(file.interfaces(), consumers.len(), frames, resolve);
        let rings = Rings::new(consumers);
        let ring_bytes = rings.ring_bytes() as u64;
        shared.ring_bytes.store(ring_bytes, Ordering::Relaxed);
        let bound = tracker.host_bound_ns();
        shared.host_bound_ns.store(bound, Ordering::Relaxed);
        let next_statistics = MonoNs(tracker.current().from.0 + STATISTICS_EVERY_NS);
        Self {
            rings,
            reference,
            tracker,
            file,
            pieces: Pieces::new(batch, output, events),
            shared,
            next_statistics,
        }
    }

    /// Drains until it is asked to stop and the rings are empty.
    pub fn run(mut self) -> Finished {
        let mut idle = Idle::new(self.rings.ring_bytes());
        loop {
            let stopping = self.shared.stop_requested();
            let found = if stopping {
                self.drain_all()
            } else {
                self.drain()
            };
            if stopping && !found {
                return self.into_finished();
            }
            if !stopping {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes out of the rings what can be in order now; with several of them the
    /// youngest blocks stay for the next drain. Says whether there was anything.
    pub fn drain(&mut self) -> bool {
        self.drain_with(Rings::drain)
    }

    /// Takes out everything: the producers have ended, so nothing is on its way
    /// any more. Says whether there was anything.
    pub fn drain_all(&mut self) -> bool {
        self.drain_with(Rings::drain_all)
    }

    fn drain_with(&mut self, drain: impl FnOnce(&mut Rings, &Conversion, &mut Pieces)) -> bool {
        // A clock reading on either side of the look at the rings. By the first
        // one blocks are held back: what was stamped a window earlier is there.
        // The second one is later than every stamp taken out now.
        self.take_recalibration();
        let before = self.reference.read();
        let fill = self.rings.look();
        let after = self.read_clock();
        self.rings.hold_back(&self.tracker, &before, after);
        let now = self.tracker.stamp_before(&before, 0);
        self.pieces.batch.clock_is_at(now);

        let conversion = self.tracker.conversion();
        drain(&mut self.rings, &conversion, &mut self.pieces);
        self.shared
            .peak_fill
            .fetch_max(fill.peak, Ordering::Relaxed);
        self.publish();
        fill.is_any
    }

    /// Stamps from here on go by offsets that the control task has found to have
    /// moved; those before are off by at most the error that comes with them.
    fn take_recalibration(&mut self) {
        let found = self
            .shared
            .recalibrated
            .lock()
            .map(|mut found| found.take());
        if let Ok(Some(Recalibration {
            offsets,
            stamp_error_ns,
        })) = found
        {
            self.rings.set_stamp_offsets(&offsets);
            self.tracker.set_stamp_error_ns(stamp_error_ns);
        }
    }

    /// Reads the clock and does what is due by it. Gives the time.
    fn read_clock(&mut self) -> MonoNs {
        let cross = self.tracker.read(&mut self.reference);
        if let Observation::Stepped { step_ns } = self.tracker.observe(&cross) {
            self.pieces.tell(Event::Stepped { step_ns });
        }
        let now = cross.mono[1];
        if now >= self.next_statistics {
            self.next_statistics = MonoNs(now.0 + STATISTICS_EVERY_NS);
            if self.pieces.batch.is_writing()
                && let Err(error) = self.write_statistics(now)
            {
                self.pieces.write_failed(&[], error);
            }
        }
        now
    }

    fn write_statistics(&mut self, at: MonoNs) -> Result<(), OutputError> {
        let observed = self.shared.observed.lock().map(|seen| seen.clone());
        let observed = observed.unwrap_or_default();
        let batch = &self.pieces.batch;
        let order = batch.order(&self.tracker);
        let blocks = self
            .file
            .statistics(&mut self.tracker, at, &batch.counts, order, &observed, None)
            .map_err(WriteError::into_output_error)?;
        self.pieces.output.write(&blocks)
    }

    fn publish(&self) {
        let shared = &self.shared;
        let Pieces { batch, output, .. } = &self.pieces;
        shared.written.store(batch.written(), Ordering::Relaxed);
        shared.bytes.store(output.length(), Ordering::Relaxed);
        let bound = self.tracker.host_bound_ns();
        shared.host_bound_ns.store(bound, Ordering::Relaxed);
    }

    pub(super) fn into_finished(self) -> Finished {
        Finished {
            output: self.pieces.output,
            file: self.file,
            tracker: self.tracker,
            batch: self.pieces.batch,
        }
    }
}

impl<R> std::fmt::Debug for Converter<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").finish_non_exhaustive()
    }
}
