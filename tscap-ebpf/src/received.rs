//! A frame at XDP.

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::{bpf_xdp_get_buff_len, bpf_xdp_load_bytes};
use tscap_common::block::MIN_FRAME;
use tscap_common::hook::Hook;

use crate::filter;
use crate::frame::{Frame, own_slot};
use crate::hardware;
use crate::vlan::{self, Tag};

/// A frame at XDP. Only a `PATCHED` program has a place of its own, is filtered and asked
/// for a tag and a hardware stamp: user space patches the calls.
#[derive(Clone, Copy)]
pub struct Received<const PATCHED: bool>(pub *mut xdp_md);

impl<const PATCHED: bool> Frame for Received<PATCHED> {
    const HOOK: Hook = Hook::Xdp;
    const LEAST: u64 = MIN_FRAME as u64;
    /// An Ethernet frame of an MTU of 1500, with tags. By `bpf_xdp_load_bytes`, whose inner
    /// calls return by a safe and slow way on some CPUs, the whole program took 1.4 times
    /// as long for a frame of 64 bytes and 1.75 times for one of 1500 (`cargo xtask bench
    /// xdp`, AMD EPYC in a virtual machine, Linux 6.18).
    const MOST_BY_WORDS: u64 = 1536;

    #[inline(always)]
    fn slot(self) -> u32 {
        if PATCHED { own_slot() } else { 0 }
    }

    #[inline(always)]
    fn queue(self) -> Option<u32> {
        Some(unsafe { (*self.0).rx_queue_index })
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
    fn tag(self) -> Option<Tag> {
        if PATCHED { vlan::read(self.0) } else { None }
    }

    #[inline(always)]
    fn hardware_stamp(self) -> Option<u64> {
        if PATCHED {
            hardware::read(self.0)
        } else {
            None
        }
    }

    #[inline(always)]
    fn is_wanted(self, tag: Option<Tag>) -> bool {
        !PATCHED || filter::accepts(self.0, tag)
    }

    #[inline(always)]
    fn flags(self) -> u32 {
        Self::HOOK.direction().epb_flags()
    }
}
