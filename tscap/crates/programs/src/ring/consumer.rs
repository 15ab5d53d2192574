//! Takes blocks out of one ring, in runs that lie together in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{Block, CorruptBlock, corrupt, stamp};
use super::key_record::KeyRecord;
use super::memory::Memory;
use tscap_clock::RawStamp;

/// Bytes that come into the cache together.
const CACHE_LINE: usize = 64;
/// So many lines are read ahead at a time: enough for their waiting times to
/// overlap, few enough that 64 rings fit a first- or second-level cache.
const WARM_LINES: usize = 8;
/// More is read when less than this is left of it, bytes.
const WARM_MARGIN: u64 = 512;

/// Memory is asked for so many blocks of this one's length ahead: the processor foresees the
/// next few lines only, and of a long block needs but the first.
const BLOCKS_AHEAD: usize = 8;

/// The one consumer of one ring.
#[derive(Debug)]
pub struct Consumer {
    pub(super) memory: Arc<Memory>,
    pub(super) ring: u32,
    /// Position of the next block to take.
    next: u64,
    /// Position up to which the producer has its room back.
    tail: u64,
    /// Position up to which the blocks were read ahead.
    warm: u64,
    /// What this ring's stamps must be increased by to compare with those of the
    /// other rings, in units of the stamp.
    stamp_offset: i64,
}

/// Published bytes that lie together in memory: whole blocks from the next one
/// on, up to the head or the end of the ring. The last block may run over into
/// the slack, so the slice can be longer than what is published.
#[derive(Debug)]
pub struct Run<'a> {
    bytes: &'a mut [u8],
    position: u64,
    /// Bytes from the start of the run in which a block may start.
    starts: usize,
    /// No block with a later stamp is taken.
    until: RawStamp,
    published: usize,
    taken: usize,
    stamp_offset: i64,
}

impl Consumer {
    /// The consumers of all rings of `memory`: one each, as only one may exist.
    pub fn all(memory: Memory) -> Vec<Self> {
        let memory = Arc::new(memory);
        (0..memory.count())
            .map(|ring| {
                let tail = memory.tail(ring).load(Ordering::Relaxed);
                Self {
                    next: tail,
                    warm: tail,
                    tail,
                    stamp_offset: 0,
                    ring,
                    memory: Arc::clone(&memory),
                }
            })
            .collect()
    }

    /// Sets what this ring's stamps must be increased by (wrapping) to compare
    /// with those of the other rings, in units of the stamp: 0 for clocks that
    /// all CPUs share. This is the one place where it goes: order and conversion
    /// both see stamps with it.
    pub fn set_stamp_offset(&mut self, offset: i64) {
        self.stamp_offset = offset;
    }

    /// Where the producer is: all blocks before it can be read.
    pub fn head(&self) -> u64 {
        // Acquire, against the producer's release store of the head.
        self.memory.head(self.ring).load(Ordering::Acquire)
    }

    /// Where this consumer is: all blocks before it are taken.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Length of the ring, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.memory.ring_bytes()
    }

    /// The blocks from the next one up to `head` (a value that [`Self::head`]
    /// gave) that lie together, as far as no stamp is past `until`; `None` if
    /// there is nothing up to `head`.
    #[inline]
    pub fn run(&mut self, head: u64, until: RawStamp) -> Option<Run<'_>> {
        let published = usize::try_from(head.checked_sub(self.next)?).ok()?;
        let ring_bytes = self.memory.ring_bytes();
        assert!(
            published <= ring_bytes,
            "the head ran {published} bytes ahead"
        );
        if published == 0 {
            return None;
        }
        let offset = (self.next & (ring_bytes as u64 - 1)) as usize;
        let (data, length) = self.memory.data(self.ring);
        let accessible = published.min(length - offset);
        // SAFETY: inside the ring's data and slack. The producer never writes
        // between tail and head, and `next` lies there: it waits until the tail
        // has passed. A block that starts before the end of the ring and runs
        // into the slack lies wholly below the head, and so below `published`.
        // `&mut self` keeps this the only reference into the ring.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(data.add(offset).as_ptr(), accessible) };
        Some(Run {
            bytes,
            position: self.next,
            starts: published.min(ring_bytes - offset),
            until,
            published,
            taken: 0,
            stamp_offset: self.stamp_offset,
        })
    }

    /// Stamp of the next block, if there is one before `head`.
    #[inline]
    pub fn next_stamp(&mut self, head: u64) -> Option<RawStamp> {
        self.run(head, RawStamp::NEVER)?.next_stamp()
    }

    /// Reads ahead, up to `head`, so that blocks come into the cache with their
    /// waiting times side by side: with many rings in turns the processor does
    /// not foresee which come next. Plain reads, on which nothing depends.
    #[inline]
    pub fn warm(&mut self, head: u64) {
        if self.warm > self.next + WARM_MARGIN {
            return;
        }
        let skip = self.warm.saturating_sub(self.next) as usize;
        let Some(run) = self.run(head, RawStamp::NEVER) else {
            return;
        };
        let ahead = run.bytes.iter().skip(skip).step_by(CACHE_LINE);
        let lines = ahead
            .take(WARM_LINES)
            .copied()
            .map(std::hint::black_box)
            .count();
        self.warm = self.next + (skip + lines * CACHE_LINE) as u64;
    }

    /// Moves on by `length` bytes: whole blocks that were taken from a run. They
    /// stay where they are until [`Self::release`].
    #[inline]
    pub fn take(&mut self, length: usize) {
        self.next += length as u64;
    }

    /// Gives the room of all blocks taken back to the producer.
    pub fn release(&mut self) {
        if self.tail == self.next {
            return;
        }
        self.tail = self.next;
        // Release, so that the producer sees the tail only after the reads of
        // the bytes are done.
        self.memory
            .tail(self.ring)
            .store(self.tail, Ordering::Release);
    }
}

impl Run<'_> {
    /// The next block, or `None` at the end of the run or before a later stamp
    /// than asked for.
    #[inline]
    pub fn next_block(&mut self) -> Option<Result<Block<'_>, CorruptBlock>> {
        if self.taken >= self.starts {
            return None;
        }
        let position = self.position + self.taken as u64;
        let bytes = &mut self.bytes[self.taken..];
        let stamp = stamp(bytes, self.stamp_offset);
        if stamp > self.until {
            return None;
        }
        let here = bytes.as_ptr();
        let block = Block::at_start(bytes, position, stamp);
        if let Ok(block) = &block {
            self.taken += block.len();
            tscap_arch::prefetch(here.wrapping_add(BLOCKS_AHEAD * block.len()));
        }
        Some(block)
    }

    /// The next record, where programs leave keys in the place of blocks; `None` at the end of
    /// the run.
    #[inline]
    pub fn next_key(&mut self) -> Option<Result<KeyRecord<'_>, CorruptBlock>> {
        if self.taken >= self.starts {
            return None;
        }
        let position = self.position + self.taken as u64;
        let bytes = &self.bytes[self.taken..];
        let stamp = stamp(bytes, self.stamp_offset);
        match KeyRecord::at_start(bytes, position, stamp) {
            Ok((record, length)) => {
                self.taken += length;
                Some(Ok(record))
            }
            Err(corrupt) => Some(Err(corrupt)),
        }
    }

    /// Takes no block with a later stamp than this either.
    #[inline]
    pub fn end_at(&mut self, stamp: RawStamp) {
        self.until = self.until.min(stamp);
    }

    /// Stamp of the next block, whatever the limit; `None` at the end of the run.
    #[inline]
    pub fn next_stamp(&self) -> Option<RawStamp> {
        let next = self.bytes.get(self.taken..)?;
        (self.taken < self.starts).then(|| stamp(next, self.stamp_offset))
    }

    /// Puts back the blocks from `start` on, bytes: they are not taken.
    pub fn put_back_from(&mut self, start: usize) {
        self.taken = start;
    }

    /// The next block as an error: one of a slot that there is not.
    pub fn corrupt(&self) -> CorruptBlock {
        let position = self.position + self.taken as u64;
        corrupt(&self.bytes[self.taken..], position)
    }

    /// Gives up on the rest: all that is published counts as taken.
    pub fn skip_to_head(&mut self) -> usize {
        self.starts = 0;
        self.published
    }

    /// Length of the blocks taken so far, bytes.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The blocks taken so far, as they are now.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.taken]
    }
}

#[cfg(test)]
mod tests;
