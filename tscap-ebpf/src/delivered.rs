//! An IP packet that a socket of a control group is to get (`__cgroup_bpf_run_filter_skb` in
//! kernel/bpf/cgroup.c).

use core::ffi::c_void;
use core::mem::transmute;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::SkBuffContext;
use tscap_common::config::KERNEL_CONTEXT_CALL;
use tscap_common::hook::Hook;
use tscap_common::kernel_field::KernelField;

use crate::frame::{Frame, own_slot};
use crate::kernel::{is_own_index, is_own_namespace, read};
use crate::packet::{HEADER, LEAST, load_behind_header};
use crate::vlan::Tag;

/// An IP packet.
#[derive(Clone, Copy)]
pub struct Delivered(*mut __sk_buff);

impl Delivered {
    /// The packet, if it was received by the program's own interface. Before Linux 6.2 no
    /// program there knows the network namespace: one with the same number in another one
    /// passes for it.
    #[inline(always)]
    pub fn own(ctx: &SkBuffContext) -> Option<Self> {
        let packet = ctx.skb.skb;
        if !is_own_index(unsafe { (*packet).ifindex }) {
            return None;
        }
        let own: unsafe extern "C" fn(*mut __sk_buff) -> *const c_void =
            unsafe { transmute(KERNEL_CONTEXT_CALL as usize) };
        let buffer = unsafe { own(packet) };
        if !buffer.is_null() {
            let device = read(KernelField::Device, buffer) as *const c_void;
            let namespace = read(KernelField::Namespace, device) as *const c_void;
            if !is_own_namespace(namespace) {
                return None;
            }
        }
        Some(Self(packet))
    }
}

impl Frame for Delivered {
    const HOOK: Hook = Hook::Cgroup;
    const LEAST: u64 = LEAST;
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
        HEADER + unsafe { u64::from((*self.0).len) }
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        (0, 0)
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe {
            load_behind_header(to, len, |to, len| {
                bpf_skb_load_bytes(self.0.cast(), 0, to.cast(), len) == 0
            })
        }
    }

    #[inline(always)]
    fn tag(self) -> Option<Tag> {
        None
    }

    #[inline(always)]
    fn is_wanted(self, _: Option<Tag>) -> bool {
        true
    }

    #[inline(always)]
    fn segments(self) -> u32 {
        unsafe { (*self.0).gso_segs }
    }

    #[inline(always)]
    fn flags(self) -> u32 {
        Self::HOOK.direction().epb_flags()
    }
}
