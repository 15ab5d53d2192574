//! A frame as the body sees it, whatever hook it is at.

use core::mem::transmute;

use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use tscap_common::config::SLOT_CALL;
use tscap_common::hook::Hook;

use crate::vlan::Tag;

/// What the body asks of a hook's context.
pub trait Frame: Copy {
    /// The hook.
    const HOOK: Hook;
    /// The shortest frame that there is here, bytes.
    const LEAST: u64;
    /// The longest frame that is copied word by word from its first buffer, bytes; a
    /// multiple of [`crate::copy::CHUNK`]. The verifier walks through the loop as often as
    /// it can run.
    const MOST_BY_WORDS: u64;

    /// Index of the producer that records it: a number of its own for each CPU.
    #[inline(always)]
    fn producer(self) -> u32 {
        unsafe { bpf_get_smp_processor_id() as u32 }
    }
    /// Its place in the capture.
    fn slot(self) -> u32;
    /// Number of the queue that it came by, if it came by one.
    #[allow(dead_code, reason = "no key is of it")]
    fn queue(self) -> Option<u32>;
    /// Length of the whole frame without a [`Tag`] beside it, bytes.
    fn len(self) -> u64;
    /// Addresses where its first buffer starts and ends.
    fn first_buffer(self) -> (u64, u64);
    /// So many of its first bytes can be copied.
    #[inline(always)]
    fn reach(self) -> u64 {
        u64::MAX
    }
    /// Copies its first `len` bytes from all its buffers; false if the kernel refuses.
    ///
    /// # Safety
    /// `to` must have room for `len` bytes.
    unsafe fn load(self, to: *mut u8, len: u32) -> bool;
    /// The VLAN tag beside it, if there is one.
    fn tag(self) -> Option<Tag>;
    /// What the interface's own clock stamped it with, ns of that clock, if it did and tells.
    #[allow(dead_code, reason = "no key is of it")]
    #[inline(always)]
    fn hardware_stamp(self) -> Option<u64> {
        None
    }
    /// Whether the capture's filter wants it, with that tag in its place.
    fn is_wanted(self, tag: Option<Tag>) -> bool;
    /// Packets that it was made of.
    #[inline(always)]
    #[allow(dead_code, reason = "programs of layers ask for them")]
    fn segments(self) -> u32 {
        1
    }
    /// What `epb_flags` says of it.
    #[allow(dead_code, reason = "no key is of them")]
    fn flags(self) -> u32;
}

/// The place in the capture that user space has given this program.
#[inline(always)]
pub fn own_slot() -> u32 {
    let slot: unsafe extern "C" fn() -> u64 = unsafe { transmute(SLOT_CALL as usize) };
    unsafe { slot() as u32 }
}
