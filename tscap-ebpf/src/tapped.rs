//! A socket buffer at the tap: what a filter of a packet socket sees of the frames that its
//! interface sends, behind the queueing discipline and right before the driver, where tcpdump
//! has them from (`dev_queue_xmit_nit` in net/core/dev.c). Bottom halves are disabled there.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::SkBuffContext;
use tscap_common::hook::Hook;

use crate::filter;
use crate::frame::{Frame, own_slot};
use crate::vlan::Tag;

/// `PACKET_OUTGOING` (include/uapi/linux/if_packet.h).
const OUTGOING: u32 = 4;

/// A socket buffer on its way to the driver.
#[derive(Clone, Copy)]
pub struct Tapped(*mut __sk_buff);

impl Tapped {
    /// The frame, if its interface sends it.
    #[inline(always)]
    pub fn sent(ctx: &SkBuffContext) -> Option<Self> {
        let buffer = ctx.skb.skb;
        (unsafe { (*buffer).pkt_type } == OUTGOING).then_some(Self(buffer))
    }
}

impl Frame for Tapped {
    const HOOK: Hook = Hook::Tap;
    const LEAST: u64 = 1;
    /// The kernel lets no filter of a socket look into the buffer.
    const MOST_BY_WORDS: u64 = 0;

    #[inline(always)]
    fn slot(self) -> u32 {
        own_slot()
    }

    #[inline(always)]
    fn queue(self) -> Option<u32> {
        None
    }

    #[inline(always)]
    fn len(self) -> u64 {
        unsafe { u64::from((*self.0).len) }
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        (0, 0)
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
    fn flags(self) -> u32 {
        Self::HOOK.direction().epb_flags()
    }
}
