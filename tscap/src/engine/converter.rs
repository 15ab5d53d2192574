//! The drain loop: rings in, file out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc::UnboundedSender;

use super::batch::{Batch, Taken};
use super::finished::Finished;
use super::{Idle, Output, OutputError, Shared};
use crate::clock::{MonoNs, Observation, Reference, Tracker};
use crate::pcapng::{FileWriter, WriteError};
use crate::ring::{Consumer, CorruptBlock};

/// Blocks are converted and written in pieces of about this many bytes: large
/// enough for `write`, small enough that the producer soon gets the room back
/// and that the bytes are still in the cache when they are copied.
const PIECE_BYTES: usize = 512 * 1024;
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
    pub(super) consumers: Vec<Consumer>,
    reference: R,
    pub(super) tracker: Tracker,
    pub(super) output: Output,
    pub(super) file: FileWriter,
    pub(super) batch: Batch,
    shared: Arc<Shared>,
    events: UnboundedSender<Event>,
    next_statistics: MonoNs,
}

impl<R: Reference> Converter<R> {
    /// Takes over the rings and the output, to which `file` has written its
    /// headers. Writes at most `count` frames, if given.
    #[allow(clippy::too_many_arguments, reason = "called once, by the command")]
    pub fn new(
        consumers: Vec<Consumer>,
        reference: R,
        tracker: Tracker,
        output: Output,
        file: FileWriter,
        count: Option<u64>,
        resolve: Resolve,
        shared: Arc<Shared>,
        events: UnboundedSender<Event>,
    ) -> Self {
        let batch = Batch::new(file.interfaces(), consumers.len(), count, resolve);
        let ring_bytes = consumers.first().map_or(0, Consumer::ring_bytes);
        shared
            .ring_bytes
            .store(ring_bytes as u64, Ordering::Relaxed);
        let bound = tracker.host_bound_ns();
        shared.host_bound_ns.store(bound, Ordering::Relaxed);
        let next_statistics = MonoNs(tracker.current().from.0 + STATISTICS_EVERY_NS);
        Self {
            consumers,
            reference,
            tracker,
            output,
            file,
            batch,
            shared,
            events,
            next_statistics,
        }
    }

    /// Drains until it is asked to stop and the rings are empty.
    pub fn run(mut self) -> Finished {
        let ring_bytes = self.consumers.first().map_or(0, Consumer::ring_bytes);
        let mut idle = Idle::new(ring_bytes);
        loop {
            let stopping = self.shared.stop_requested();
            let found = self.drain();
            if stopping && !found {
                return self.into_finished();
            }
            if !stopping {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes everything out of the rings that is in them now. Says whether there
    /// was anything.
    pub fn drain(&mut self) -> bool {
        // The heads first, then the clock: every stamp taken out now is older
        // than this cross-timestamp.
        let heads: Vec<u64> = self.consumers.iter().map(Consumer::head).collect();
        self.read_clock();
        let conversion = self.tracker.conversion();

        let mut found = false;
        let mut consumers = std::mem::take(&mut self.consumers);
        for (ring, (consumer, head)) in consumers.iter_mut().zip(heads).enumerate() {
            let fill = head - consumer.tail();
            self.shared.peak_fill.fetch_max(fill, Ordering::Relaxed);
            found |= fill > 0;
            while let Some(mut run) = consumer.run(head) {
                let taken = self.batch.take(&mut run, ring, &conversion, PIECE_BYTES);
                if taken.to_write > 0
                    && let Err(error) = self.output.write(&run.bytes()[..taken.to_write])
                {
                    self.write_failed(&run.bytes()[..taken.to_write], error);
                }
                let length = match taken.corrupt {
                    None => run.taken(),
                    Some(_) => run.skip_to_head(),
                };
                consumer.release(length);
                self.tell_about(&taken);
            }
        }
        self.consumers = consumers;
        self.publish();
        found
    }

    fn read_clock(&mut self) {
        let cross = self.reference.read();
        if let Observation::Stepped { step_ns } = self.tracker.observe(&cross) {
            self.tell(Event::Stepped { step_ns });
        }
        if cross.mono[1] >= self.next_statistics {
            self.next_statistics = MonoNs(cross.mono[1].0 + STATISTICS_EVERY_NS);
            if self.batch.is_writing()
                && let Err(error) = self.write_statistics(cross.mono[1])
            {
                self.write_failed(&[], error);
            }
        }
    }

    fn write_statistics(&mut self, at: MonoNs) -> Result<(), OutputError> {
        let observed = self.shared.observed.lock().map(|seen| seen.clone());
        let observed = observed.unwrap_or_default();
        let blocks = self
            .file
            .statistics(&mut self.tracker, at, &self.batch.counts, &observed, None)
            .map_err(WriteError::into_output_error)?;
        self.output.write(&blocks)
    }

    /// Keeps the whole blocks of a failed write and stops writing.
    fn write_failed(&mut self, blocks: &[u8], error: OutputError) {
        let reader_gone = error.is_reader_gone();
        let whole = self.batch.unwrite(blocks, error.written, reader_gone);
        let cut = self.output.cut(whole);
        self.tell(if reader_gone {
            Event::ReaderGone
        } else {
            Event::WriteFailed(cut.err().unwrap_or(error.source))
        });
    }

    fn tell_about(&self, taken: &Taken) {
        if taken.count_reached {
            self.tell(Event::CountReached);
        }
        if let Some(corrupt) = taken.corrupt {
            self.tell(Event::Corrupt(corrupt));
        }
    }

    fn publish(&self) {
        let shared = &self.shared;
        shared
            .written
            .store(self.batch.written(), Ordering::Relaxed);
        shared.bytes.store(self.output.length(), Ordering::Relaxed);
        let bound = self.tracker.host_bound_ns();
        shared.host_bound_ns.store(bound, Ordering::Relaxed);
    }

    fn tell(&self, event: Event) {
        // The control task may be gone already when everything is being torn
        // down; then nobody is left to care.
        let _ = self.events.send(event);
    }

    pub(super) fn into_finished(self) -> Finished {
        Finished {
            output: self.output,
            file: self.file,
            tracker: self.tracker,
            batch: self.batch,
        }
    }
}

impl<R> std::fmt::Debug for Converter<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").finish_non_exhaustive()
    }
}
