//! Takes blocks out of one ring, in runs that lie together in memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{Block, CorruptBlock};
use super::memory::Memory;

/// The one consumer of one ring.
#[derive(Debug)]
pub struct Consumer {
    pub(super) memory: Arc<Memory>,
    pub(super) ring: u32,
    /// Position up to which blocks were taken and given back to the producer.
    tail: u64,
}

/// Published bytes that lie together in memory: whole blocks from the tail on,
/// up to the head or the end of the ring. The last block may run over into the
/// slack, so the slice can be longer than what is published.
#[derive(Debug)]
pub struct Run<'a> {
    bytes: &'a mut [u8],
    position: u64,
    /// Bytes from the start of the run in which a block may start.
    starts: usize,
    published: usize,
    taken: usize,
}

impl Consumer {
    /// The consumers of all rings of `memory`: one each, as only one may exist.
    pub fn all(memory: Memory) -> Vec<Self> {
        let memory = Arc::new(memory);
        (0..memory.count())
            .map(|ring| Self {
                tail: memory.tail(ring).load(Ordering::Relaxed),
                ring,
                memory: Arc::clone(&memory),
            })
            .collect()
    }

    /// Where the producer is: all blocks before it can be read.
    pub fn head(&self) -> u64 {
        // Acquire, against the producer's release store of the head.
        self.memory.head(self.ring).load(Ordering::Acquire)
    }

    /// Where this consumer is.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Length of the ring, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.memory.ring_bytes()
    }

    /// The blocks from the tail up to `head` (a value that [`Self::head`] gave)
    /// that lie together; `None` if there are none.
    pub fn run(&mut self, head: u64) -> Option<Run<'_>> {
        let published = usize::try_from(head.checked_sub(self.tail)?).ok()?;
        let ring_bytes = self.memory.ring_bytes();
        assert!(
            published <= ring_bytes,
            "the head ran {published} bytes ahead"
        );
        if published == 0 {
            return None;
        }
        let offset = (self.tail & (ring_bytes as u64 - 1)) as usize;
        let (data, length) = self.memory.data(self.ring);
        let accessible = published.min(length - offset);
        // SAFETY: inside the ring's data and slack. The producer never writes
        // between tail and head: it waits until the tail has passed. A block
        // that starts before the end of the ring and runs into the slack lies
        // wholly below the head, hence below `published`. `&mut self` keeps this
        // the only reference into the ring.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(data.add(offset).as_ptr(), accessible) };
        Some(Run {
            bytes,
            position: self.tail,
            starts: published.min(ring_bytes - offset),
            published,
            taken: 0,
        })
    }

    /// Gives `length` bytes back to the producer: whole blocks that were taken
    /// from a run.
    pub fn release(&mut self, length: usize) {
        self.tail += length as u64;
        // Release, so that the producer sees the tail only after the reads of
        // the bytes are done.
        self.memory
            .tail(self.ring)
            .store(self.tail, Ordering::Release);
    }
}

impl Run<'_> {
    /// The next block, or `None` at the end of the run.
    #[inline]
    pub fn next_block(&mut self) -> Option<Result<Block<'_>, CorruptBlock>> {
        if self.taken >= self.starts {
            return None;
        }
        let position = self.position + self.taken as u64;
        let block = Block::at_start(&mut self.bytes[self.taken..], position);
        if let Ok(block) = &block {
            self.taken += block.len();
        }
        Some(block)
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
