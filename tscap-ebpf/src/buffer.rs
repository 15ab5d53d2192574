//! A socket buffer at tcx or clsact.

use core::mem::transmute;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::TcContext;
use tscap_common::block::{FLAGS_CHECKSUM_NOT_READY, FLAGS_SEGMENTED_LATER};
use tscap_common::config::CHECKSUM_PARTIAL_CALL;
use tscap_common::hook::Hook;

use crate::filter;
use crate::frame::{Frame, own_slot};
use crate::vlan::Tag;

/// A socket buffer, `SENT` or received.
#[derive(Clone, Copy)]
pub struct Buffer<const SENT: bool>(*mut __sk_buff);

impl<const SENT: bool> Buffer<SENT> {
    #[inline(always)]
    pub fn of(ctx: &TcContext) -> Self {
        Self(ctx.skb.skb)
    }
}

impl<const SENT: bool> Frame for Buffer<SENT> {
    const HOOK: Hook = if SENT {
        Hook::TcEgress
    } else {
        Hook::TcIngress
    };
    /// Of an interface without a header of the link layer.
    const LEAST: u64 = 1;
    /// What is longer mostly lies in several buffers: of a TCP segment the first one holds
    /// no data.
    const MOST_BY_WORDS: u64 = 128;

    #[inline(always)]
    fn slot(self) -> u32 {
        own_slot()
    }

    /// One that is sent gets its queue later. One that was received has the number plus
    /// one, or 0 for none (`skb_record_rx_queue`, include/linux/skbuff.h).
    #[inline(always)]
    fn queue(self) -> Option<u32> {
        if SENT {
            return None;
        }
        unsafe { (*self.0).queue_mapping }.checked_sub(1)
    }

    #[inline(always)]
    fn len(self) -> u64 {
        unsafe { u64::from((*self.0).len) }
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        unsafe { (u64::from((*self.0).data), u64::from((*self.0).data_end)) }
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe { bpf_skb_load_bytes(self.0.cast(), 0, to.cast(), len) == 0 }
    }

    #[inline(always)]
    fn tag(self) -> Option<Tag> {
        unsafe {
            ((*self.0).vlan_present != 0).then(|| Tag {
                protocol: (*self.0).vlan_proto as u16,
                control: (*self.0).vlan_tci as u16,
            })
        }
    }

    #[inline(always)]
    fn is_wanted(self, tag: Option<Tag>) -> bool {
        filter::accepts(self.0, tag)
    }

    #[inline(always)]
    fn segments(self) -> u32 {
        unsafe { (*self.0).gso_segs }
    }

    #[inline(always)]
    fn flags(self) -> u32 {
        let is_partial: unsafe extern "C" fn(*mut __sk_buff) -> u64 =
            unsafe { transmute(CHECKSUM_PARTIAL_CALL as usize) };
        let mut flags = Self::HOOK.direction().epb_flags();
        if unsafe { is_partial(self.0) } != 0 {
            flags |= FLAGS_CHECKSUM_NOT_READY;
        }
        if unsafe { (*self.0).gso_size } != 0 {
            flags |= FLAGS_SEGMENTED_LATER;
        }
        flags
    }
}
