//! An array map of words that this process and its programs share.

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping of words; unmapped on drop.
#[derive(Debug)]
pub struct SharedWords {
    base: NonNull<AtomicU64>,
    count: NonZeroUsize,
}

// SAFETY: the mapping belongs to no thread, and its words are only touched as atomics.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps the first `count` words of an array map that was made with `BPF_F_MMAPABLE`, whose
    /// elements are multiples of eight bytes.
    ///
    /// # Errors
    /// If the map is shorter, or was made without that flag.
    pub fn map(map: impl AsFd, count: NonZeroUsize) -> io::Result<Self> {
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, of a length that the kernel checks against the map
        // (`array_map_mmap`, kernel/bpf/arraymap.c); nothing in this process is replaced.
        let base = unsafe { mmap(None, bytes(count), protection, MapFlags::MAP_SHARED, map, 0) }?;
        Ok(Self {
            base: base.cast(),
            count,
        })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words are mapped, at a page's beginning, for as long as `self` lives;
        // whatever is in them is a number, and both sides access them whole.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.count.get()) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: our own mapping, with no reference into it left: they borrow from `self`.
        // Failure would need a wrong address, which leaves nothing to do.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), bytes(self.count).get()) };
    }
}

fn bytes(count: NonZeroUsize) -> NonZeroUsize {
    const WORD: NonZeroUsize = NonZeroUsize::new(size_of::<AtomicU64>()).expect("8 bytes");
    count.saturating_mul(WORD)
}
