//! The memory of all rings, shared with the kernel.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use tscap_common::ring::{DATA_OFFSET, HEAD_OFFSET, SLACK_BYTES, TAIL_OFFSET, value_size};

/// Why the rings could not be mapped.
#[derive(Debug, thiserror::Error)]
#[error("cannot map {count} rings of {ring_bytes} bytes into memory")]
pub struct MapError {
    count: u32,
    ring_bytes: usize,
    source: io::Error,
}

/// One mapping over all rings; unmapped on drop.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    count: u32,
    ring_bytes: usize,
}

// SAFETY: the mapping belongs to no thread; the indices in it are only touched
// as atomics, and the data only by the one `Consumer` of a ring (see there).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the `RINGS` array map, which has `count` elements of
    /// `value_size(ring_bytes)`.
    pub fn map(map: impl AsFd, count: u32, ring_bytes: usize) -> Result<Self, MapError> {
        Self::new(count, ring_bytes, |length| {
            let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            // SAFETY: a new mapping, of a length that the kernel checks against
            // the map; nothing in this process is replaced.
            unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, map, 0) }
        })
    }

    /// Rings that no kernel writes: for tests and for measuring the consumer.
    pub(crate) fn anonymous(count: u32, ring_bytes: usize) -> Result<Self, MapError> {
        Self::new(count, ring_bytes, |length| {
            let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            // SAFETY: a new private mapping; nothing is replaced.
            unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE) }
        })
    }

    fn new(
        count: u32,
        ring_bytes: usize,
        map: impl FnOnce(NonZeroUsize) -> nix::Result<NonNull<std::ffi::c_void>>,
    ) -> Result<Self, MapError> {
        NonZeroUsize::new(count as usize * value_size(ring_bytes))
            .ok_or(nix::Error::EINVAL)
            .and_then(map)
            .map(|base| Self {
                base: base.cast(),
                count,
                ring_bytes,
            })
            .map_err(|errno| MapError {
                count,
                ring_bytes,
                source: errno.into(),
            })
    }

    /// How many rings there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Length of one ring's data, bytes.
    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    fn ring(&self, index: u32) -> NonNull<u8> {
        assert!(index < self.count, "ring {index} of {}", self.count);
        // SAFETY: the mapping holds `count` rings one behind the other.
        unsafe { self.base.add(index as usize * value_size(self.ring_bytes)) }
    }

    /// The producer's position in ring `index`.
    pub(super) fn head(&self, index: u32) -> &AtomicU64 {
        // SAFETY: inside the ring's first page, aligned to eight, and only ever
        // accessed atomically by both sides.
        unsafe { self.ring(index).add(HEAD_OFFSET).cast().as_ref() }
    }

    /// The consumer's position in ring `index`.
    pub(super) fn tail(&self, index: u32) -> &AtomicU64 {
        // SAFETY: as for the head.
        unsafe { self.ring(index).add(TAIL_OFFSET).cast().as_ref() }
    }

    /// Start of the data of ring `index`, with the length that may be accessed:
    /// the ring and its slack.
    pub(super) fn data(&self, index: u32) -> (NonNull<u8>, usize) {
        // SAFETY: inside the ring.
        let data = unsafe { self.ring(index).add(DATA_OFFSET) };
        (data, self.ring_bytes + SLACK_BYTES)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let length = self.count as usize * value_size(self.ring_bytes);
        // SAFETY: our own mapping, with no reference into it left: they all
        // borrow from or share ownership of `self`. Failure would need a wrong
        // address, which leaves nothing to do.
        let _ = unsafe { munmap(self.base.cast(), length) };
    }
}
