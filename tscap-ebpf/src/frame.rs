//! A frame as the body sees it, whatever hook it is at.

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::{bpf_xdp_get_buff_len, bpf_xdp_load_bytes};
use tscap_common::hook::Hook;

use crate::filter;
use crate::vlan::{self, Tag};

/// What the body asks of a hook's context.
pub trait Frame: Copy {
    /// The hook.
    const HOOK: Hook;

    /// Number of the interface.
    fn ifindex(self) -> u32;
    /// Number of the queue.
    fn queue(self) -> u32;
    /// Length of the whole frame without a [`Tag`] beside it, bytes.
    fn len(self) -> u64;
    /// Addresses where its first buffer starts and ends.
    fn first_buffer(self) -> (u64, u64);
    /// Copies its first `len` bytes from all its buffers; false if the kernel refuses.
    ///
    /// # Safety
    /// `to` must have room for `len` bytes.
    unsafe fn load(self, to: *mut u8, len: u32) -> bool;
    /// Whether the capture's filter wants it.
    fn is_wanted(self) -> bool;
    /// The VLAN tag beside it, if there is one.
    fn tag(self) -> Option<Tag>;
}

/// A frame at XDP. Only in a `PATCHED` program it is filtered and asked for a tag: user
/// space patches both calls.
#[derive(Clone, Copy)]
pub struct Received<const PATCHED: bool>(pub *mut xdp_md);

impl<const PATCHED: bool> Frame for Received<PATCHED> {
    const HOOK: Hook = Hook::Xdp;

    #[inline(always)]
    fn ifindex(self) -> u32 {
        unsafe { (*self.0).ingress_ifindex }
    }

    #[inline(always)]
    fn queue(self) -> u32 {
        unsafe { (*self.0).rx_queue_index }
    }

    #[inline(always)]
    fn len(self) -> u64 {
        unsafe { bpf_xdp_get_buff_len(self.0) }
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        unsafe { ((*self.0).data as u64, (*self.0).data_end as u64) }
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe { bpf_xdp_load_bytes(self.0, 0, to.cast(), len) == 0 }
    }

    #[inline(always)]
    fn is_wanted(self) -> bool {
        !PATCHED || filter::accepts(self.0)
    }

    #[inline(always)]
    fn tag(self) -> Option<Tag> {
        if PATCHED { vlan::read(self.0) } else { None }
    }
}
