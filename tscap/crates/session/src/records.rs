//! What programs record, and the order in which it is taken out.

use tscap_clock::{CrossTimestamp, MonoNs, RawStamp, Tracker};
use tscap_engine::Window;
use tscap_programs::ring::{Block, Consumer, CorruptBlock, KeyRecord, Merge};

use super::sink::{Sink, Times};

/// The rings, and where their producers were when this drain began.
#[derive(Debug)]
pub struct Rings {
    pub(super) consumers: Vec<Consumer>,
    pub(super) heads: Vec<u64>,
}

/// When a drain looked at the rings.
#[derive(Debug)]
pub struct Moment<'a> {
    pub(super) tracker: &'a Tracker,
    pub(super) before: MonoNs,
    pub(super) cross: CrossTimestamp,
    pub(super) is_last: bool,
}

/// What is recorded, and how it is taken out of the rings.
pub trait Records: Send + Sized + 'static {
    /// One record.
    type Record<'a>;

    /// Of so many rings.
    fn new(rings: usize) -> Self;

    /// Gives what may be taken out at that moment to the sink.
    ///
    /// # Errors
    /// If there is something else in a ring.
    fn take_out<S: Sink<Records = Self>>(
        &mut self,
        rings: &mut Rings,
        moment: &Moment<'_>,
        sink: &mut S,
        times: &Times,
    ) -> Result<(), CorruptBlock>;
}

/// Keys: one ring behind the other, each as it is.
#[derive(Debug)]
pub struct Keys(());

/// Frames: those of all rings in the order of their stamps, as far as they are recorded within a
/// window of order, as in a capture.
#[derive(Debug)]
pub struct Frames {
    merge: Merge,
    window: Window,
}

impl Records for Keys {
    type Record<'a> = KeyRecord<'a>;

    fn new(_: usize) -> Self {
        Self(())
    }

    fn take_out<S: Sink<Records = Self>>(
        &mut self,
        rings: &mut Rings,
        _: &Moment<'_>,
        sink: &mut S,
        times: &Times,
    ) -> Result<(), CorruptBlock> {
        let all = rings.consumers.iter_mut().zip(&rings.heads);
        for (ring, (consumer, head)) in all.enumerate() {
            while let Some(mut run) = consumer.run(*head, RawStamp::NEVER) {
                while let Some(record) = run.next_key() {
                    sink.take(ring, record?, times);
                }
                let length = run.taken();
                consumer.take(length);
            }
            consumer.release();
        }
        Ok(())
    }
}

impl Records for Frames {
    type Record<'a> = Block<'a>;

    fn new(rings: usize) -> Self {
        Self {
            merge: Merge::new(rings),
            window: Window::new(rings),
        }
    }

    fn take_out<S: Sink<Records = Self>>(
        &mut self,
        rings: &mut Rings,
        moment: &Moment<'_>,
        sink: &mut S,
        times: &Times,
    ) -> Result<(), CorruptBlock> {
        // A single ring is in order as it is.
        if rings.consumers.len() > 1 {
            let (tracker, cross) = (moment.tracker, &moment.cross);
            self.window
                .move_on(tracker, cross, &rings.heads, moment.before);
        }
        if moment.is_last {
            self.window.open();
        }
        self.take_within(rings, sink, times)?;
        let half = rings.consumers.first().map_or(0, Consumer::ring_bytes) as u64 / 2;
        let mut held = rings.heads.iter().zip(&rings.consumers);
        // Rather a late packet than a lost one.
        if held.any(|(head, consumer)| head - consumer.next() > half) {
            self.window.open();
            self.take_within(rings, sink, times)?;
        }
        Ok(())
    }
}

impl Frames {
    /// Takes out what lies within the window.
    fn take_within<S: Sink<Records = Self>>(
        &mut self,
        rings: &mut Rings,
        sink: &mut S,
        times: &Times,
    ) -> Result<(), CorruptBlock> {
        for ring in 0..rings.consumers.len() {
            let first = self.first(rings, ring);
            self.merge.offer(ring, first);
        }
        while let Some(turn) = self.merge.turn() {
            let ring = turn.ring;
            let consumer = &mut rings.consumers[ring];
            let (end, horizon) = self.window.reach(ring, consumer.next(), rings.heads[ring]);
            let run = consumer.run(end, turn.until.min(horizon));
            let mut run = run.expect("a ring whose turn it is has a block");
            while let Some(block) = run.next_block() {
                sink.take(ring, block?, times);
            }
            let length = run.taken();
            consumer.take(length);
            consumer.release();
            let next = self.first(rings, ring);
            self.merge.offer(ring, next);
        }
        Ok(())
    }

    /// Stamp of the next block of `ring` within the window.
    fn first(&self, rings: &mut Rings, ring: usize) -> Option<RawStamp> {
        let consumer = &mut rings.consumers[ring];
        let (end, horizon) = self.window.reach(ring, consumer.next(), rings.heads[ring]);
        consumer.next_stamp(end).filter(|stamp| *stamp <= horizon)
    }
}
