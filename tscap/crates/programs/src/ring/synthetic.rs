//! A producer in user space that lays blocks out as the XDP program does: the
//! frame source of tests and of the converter's benchmark.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tscap_common::block::{
    self, CAPLEN_OFFSET, DATA_OFFSET, DROPCOUNT_BYTES, EPB_TYPE, INTERFACE_OFFSET, LENGTH_OFFSET,
    OPT_DROPCOUNT, ORIGLEN_OFFSET, STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET, TYPE_OFFSET,
};
use tscap_common::hook::Slot;

use super::{Consumer, MapError, Memory};
use tscap_clock::RawStamp;

/// The producer of one ring in anonymous memory.
#[derive(Debug)]
pub struct Producer {
    memory: Arc<Memory>,
    ring: u32,
    head: u64,
    dropped: u64,
}

/// Makes `count` rings: the producers and the consumers of each.
pub fn rings(count: u32, ring_bytes: usize) -> Result<(Vec<Producer>, Vec<Consumer>), MapError> {
    let consumers = Consumer::all(Memory::anonymous(count, ring_bytes)?);
    let producers = consumers.iter().map(Consumer::producer).collect();
    Ok((producers, consumers))
}

impl Consumer {
    fn producer(&self) -> Producer {
        Producer {
            memory: Arc::clone(&self.memory),
            ring: self.ring,
            head: self.memory.head(self.ring).load(Ordering::Relaxed),
            dropped: 0,
        }
    }
}

impl Producer {
    /// Appends a frame of which all of `frame` is captured, or counts it as lost
    /// if the ring is full. Says which.
    pub fn push(&mut self, slot: Slot, stamp: RawStamp, frame: &[u8]) -> bool {
        let options = block::Options {
            drop_count: self.dropped > 0,
            ..block::Options::default()
        };
        let length = block::block_len(frame.len(), options.bytes());
        let tail = self.memory.tail(self.ring).load(Ordering::Acquire);
        if self.head - tail + length as u64 > self.memory.ring_bytes() as u64 {
            self.dropped += 1;
            return false;
        }
        let bytes = self.encode(slot, stamp, frame, length);
        let offset = (self.head & (self.memory.ring_bytes() as u64 - 1)) as usize;
        let (data, accessible) = self.memory.data(self.ring);
        assert!(offset + length <= accessible);
        // SAFETY: inside data and slack, and past the head, where the consumer
        // does not look yet.
        unsafe {
            data.add(offset)
                .copy_from_nonoverlapping(std::ptr::NonNull::from(&bytes[0]), length);
        }
        self.head += length as u64;
        self.memory
            .head(self.ring)
            .store(self.head, Ordering::Release);
        self.dropped = 0;
        true
    }

    fn encode(&self, slot: Slot, stamp: RawStamp, frame: &[u8], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let caplen = u32::try_from(frame.len()).expect("frames fit a record");
        let total = u32::try_from(length).expect("records are short");
        let words = [
            (TYPE_OFFSET, EPB_TYPE),
            (LENGTH_OFFSET, total),
            (INTERFACE_OFFSET, slot.0),
            (STAMP_HIGH_OFFSET, (stamp.0 >> 32) as u32),
            (STAMP_LOW_OFFSET, (stamp.0 & 0xffff_ffff) as u32),
            (CAPLEN_OFFSET, caplen),
            (ORIGLEN_OFFSET, caplen),
            (length - 4, total),
        ];
        for (offset, word) in words {
            bytes[offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[DATA_OFFSET..][..frame.len()].copy_from_slice(frame);
        if self.dropped > 0 {
            let option = &mut bytes[DATA_OFFSET + block::padded(frame.len())..][..DROPCOUNT_BYTES];
            option[..4].copy_from_slice(&OPT_DROPCOUNT.to_ne_bytes());
            option[4..].copy_from_slice(&self.dropped.to_ne_bytes());
        }
        bytes
    }
}
