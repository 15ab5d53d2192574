//! The disruption marker of VMClock, mapped: one look is one load.
#![allow(unsafe_code, reason = "maps the page of a device")]

use std::ffi::c_void;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::vmclock::{self, MARKER};

/// What the device gives at least.
const PAGE: NonZeroUsize = NonZeroUsize::new(4096).expect("a page");

/// Tells each of its owners once of each change of the marker: the counter was disrupted, as when
/// the virtual machine was moved to another host, at some time since the latest look.
#[derive(Clone, Debug)]
pub struct DisruptionWatch {
    page: Arc<MappedPage>,
    seen: u64,
}

#[derive(Debug)]
struct MappedPage(NonNull<c_void>);

// SAFETY: the mapping belongs to no thread, and is only read, by atomic loads.
unsafe impl Send for MappedPage {}
// SAFETY: as above.
unsafe impl Sync for MappedPage {}

impl DisruptionWatch {
    /// Watches the page of a device; `None` if it is none, or can't be opened.
    pub fn open(path: &Path) -> Option<Self> {
        let file = vmclock::open(path)?.ok()?;
        vmclock::Reading::take(&file).ok()?;
        let page = Arc::new(MappedPage::of(&file)?);
        let seen = page.marker();
        Some(Self { page, seen })
    }

    /// Whether the counter was disrupted since the last call.
    pub fn was_disrupted(&mut self) -> bool {
        let marker = self.page.marker();
        std::mem::replace(&mut self.seen, marker) != marker
    }
}

impl MappedPage {
    fn of(file: &File) -> Option<Self> {
        // SAFETY: a new mapping; nothing in this process is replaced.
        let page = unsafe {
            mmap(
                None,
                PAGE,
                ProtFlags::PROT_READ,
                MapFlags::MAP_SHARED,
                file,
                0,
            )
        };
        page.ok().map(Self)
    }

    /// It may change at any time, and is changed whole: it is a field of 8 octets at a multiple of
    /// 8.
    fn marker(&self) -> u64 {
        // SAFETY: within the page that is mapped for as long as `self` lives, and aligned; a read of
        // a parsed page came before, so that the file is long enough.
        let marker = unsafe { &*self.0.as_ptr().byte_add(MARKER).cast::<AtomicU64>() };
        u64::from_le(marker.load(Ordering::Relaxed))
    }
}

impl Drop for MappedPage {
    fn drop(&mut self) {
        // SAFETY: our own mapping, with no reference into it left. Failure would need a wrong
        // address, which leaves nothing to do.
        let _ = unsafe { munmap(self.0, PAGE.get()) };
    }
}
