//! All rings as one source of blocks in order of time.

use super::block_writer::{BlockWriter, Step};
use super::file_room::FileBoundary;
use super::window::Window;
use tscap_clock::{Conversion, CrossTimestamp, MonoNs, RawStamp, Tracker};
use tscap_programs::ring::{Consumer, Merge};

/// With more rings than this in turns, their blocks are read ahead: up to here
/// the processor does so by itself. Cost of a 64-byte frame from memory, with and
/// without, ns: 8 rings 30 and 26, 16 rings 34 and 32, 24 rings 37 and 41, 64
/// rings 40 and 73 (an EPYC of 2023, `cargo xtask bench merge`).
const CROWDED: usize = 16;

/// The consumers of all rings.
#[derive(Debug)]
pub(super) struct Rings {
    pub consumers: Vec<Consumer>,
    /// Where the producers were when this drain began.
    heads: Vec<u64>,
    window: Window,
    merge: Merge,
}

impl Rings {
    pub(super) fn new(consumers: Vec<Consumer>) -> Self {
        let count = consumers.len();
        Self {
            consumers,
            heads: vec![0; count],
            window: Window::new(count),
            merge: Merge::new(count),
        }
    }

    /// Length of one ring, bytes.
    pub(super) fn ring_bytes(&self) -> usize {
        self.consumers.first().map_or(0, Consumer::ring_bytes)
    }

    /// Sets what the stamps of each ring must be increased by.
    pub(super) fn set_stamp_offsets(&mut self, offsets: &[i64]) {
        for (consumer, offset) in self.consumers.iter_mut().zip(offsets) {
            consumer.set_stamp_offset(*offset);
        }
    }

    /// Looks where the producers are. Gives how full the fullest ring is, bytes.
    pub(super) fn look(&mut self) -> u64 {
        let mut peak = 0;
        for (head, consumer) in self.heads.iter_mut().zip(&self.consumers) {
            *head = consumer.head();
            peak = peak.max(*head - consumer.next());
        }
        peak
    }

    /// Sets the limits of this drain by the time before [`Self::look`] and the clock
    /// reading after it. A single ring is in order as it is.
    pub(super) fn hold_back(&mut self, tracker: &Tracker, cross: &CrossTimestamp, before: MonoNs) {
        if self.consumers.len() > 1 {
            self.window.move_on(tracker, cross, &self.heads, before);
        }
    }

    /// Hands the blocks within the limits on, in order. If the next file must begin
    /// in between, all blocks before it are written: to be called again then.
    pub(super) fn drain(
        &mut self,
        conversion: &Conversion,
        writer: &mut BlockWriter,
    ) -> Option<FileBoundary> {
        if let boundary @ Some(_) = self.take_out(conversion, writer) {
            return boundary;
        }
        let half = self.ring_bytes() as u64 / 2;
        let mut held = self.heads.iter().zip(&self.consumers);
        // Rather a late frame than a lost one.
        if held.any(|(head, consumer)| head - consumer.next() > half) {
            return self.drain_all(conversion, writer);
        }
        None
    }

    /// Hands all blocks on, in order as far as that can be known now; as
    /// [`Self::drain`].
    pub(super) fn drain_all(
        &mut self,
        conversion: &Conversion,
        writer: &mut BlockWriter,
    ) -> Option<FileBoundary> {
        self.window.open();
        self.take_out(conversion, writer)
    }

    fn take_out(
        &mut self,
        conversion: &Conversion,
        writer: &mut BlockWriter,
    ) -> Option<FileBoundary> {
        let mut offering = 0;
        for ring in 0..self.consumers.len() {
            // Not the empty ones: none offers anything yet, and a single ring with
            // blocks is to be alone from the start.
            if let first @ Some(_) = self.first(ring) {
                self.merge.offer(ring, first);
                offering += 1;
            }
        }
        while let Some(turn) = self.merge.turn() {
            let ring = turn.ring;
            let consumer = &mut self.consumers[ring];
            let (end, horizon) = self.window.reach(ring, consumer.next(), self.heads[ring]);
            if offering > CROWDED {
                consumer.warm(end);
            }
            let run = consumer.run(end, turn.until.min(horizon));
            let mut run = run.expect("a ring whose turn it is has a block");
            let step = writer.write_next(&mut run, ring, conversion, turn.is_alone());
            let (length, is_written) = match step {
                Step::Moved { length, is_written } => (length, is_written),
                Step::Held { length } => {
                    consumer.take(length);
                    self.release();
                    return None;
                }
                Step::Boundary(boundary) => {
                    writer.flush();
                    self.release();
                    return Some(boundary);
                }
            };
            let next = run.next_stamp();
            consumer.take(length);
            let next = match next {
                Some(stamp) => Some(stamp).filter(|stamp| *stamp <= horizon),
                // The run ended, but perhaps not what may go out of the ring.
                None => self.first(ring),
            };
            self.merge.offer(ring, next);
            if is_written {
                self.release();
            }
        }
        writer.flush();
        self.release();
        None
    }

    /// Stamp of the next block of `ring` within the limits.
    fn first(&mut self, ring: usize) -> Option<RawStamp> {
        let consumer = &mut self.consumers[ring];
        let (end, horizon) = self.window.reach(ring, consumer.next(), self.heads[ring]);
        consumer.next_stamp(end).filter(|stamp| *stamp <= horizon)
    }

    fn release(&mut self) {
        for consumer in &mut self.consumers {
            consumer.release();
        }
    }
}
