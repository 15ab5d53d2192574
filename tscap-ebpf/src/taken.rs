//! A UDP packet that the receive call of an application has taken from its socket: what
//! `__skb_recv_udp` (net/ipv4/udp.c) returns, for IPv4 and IPv6. Its headers are still in the
//! buffer's own memory, before its data.
//!
//! Programs there run for a process, and frames may come in meanwhile on the same CPU: they have
//! producers of their own. That one is not interrupted by another of its kind is seen to by the
//! kernel, which leaves the other out and counts it (`__bpf_prog_enter_recur` in
//! kernel/bpf/trampoline.c).

use core::ffi::c_void;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::Global;
use aya_ebpf::helpers::generated::{bpf_get_smp_processor_id, bpf_probe_read_kernel};
use aya_ebpf::programs::FExitContext;
use tscap_common::hook::Hook;
use tscap_common::kernel_field::KernelField;

use crate::frame::{Frame, own_slot};
use crate::kernel::{is_own_index, is_own_namespace, read};
use crate::packet::{HEADER, LEAST, load_behind_header};
use crate::vlan::Tag;

#[unsafe(no_mangle)]
static PROCESS_PRODUCERS: Global<u32> = Global::new(0);

/// `MSG_PEEK` (include/linux/socket.h).
const PEEK: u32 = 2;

/// A UDP packet with its IP header.
#[derive(Clone, Copy)]
pub struct Taken {
    start: u64,
    length: u64,
    is_in_one_piece: bool,
}

impl Taken {
    /// The packet, if there is one, and it was received by the program's own interface.
    #[inline(always)]
    pub fn own(ctx: &FExitContext) -> Option<Self> {
        // The arguments and, behind them, what is returned.
        let values = ctx.as_ptr().cast::<u64>();
        let (socket, flags) = unsafe { (*values as *const c_void, *values.add(1) as u32) };
        let buffer = unsafe { *values.add(4) as *const c_void };
        if buffer.is_null() || flags & PEEK != 0 {
            return None;
        }
        if !is_own_index(read(KernelField::ReceivedBy, buffer) as u32) {
            return None;
        }
        let namespace = read(KernelField::SocketNamespace, socket) as *const c_void;
        if !is_own_namespace(namespace) {
            return None;
        }
        let header = read(KernelField::NetworkHeader, buffer) & 0xffff;
        let start = read(KernelField::Head, buffer) + header;
        let before = read(KernelField::Data, buffer).wrapping_sub(start);
        Some(Self {
            start,
            length: before + u64::from(read(KernelField::Length, buffer) as u32),
            is_in_one_piece: read(KernelField::DataLength, buffer) as u32 == 0,
        })
    }
}

impl Frame for Taken {
    const HOOK: Hook = Hook::Application;
    const LEAST: u64 = LEAST;
    const MOST_BY_WORDS: u64 = 0;

    #[inline(always)]
    fn producer(self) -> u32 {
        unsafe { bpf_get_smp_processor_id() as u32 + PROCESS_PRODUCERS.load() }
    }

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
        HEADER + self.length
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        (0, 0)
    }

    /// No helper gives a tracing program the bytes of other buffers at this place.
    #[inline(always)]
    fn reach(self) -> u64 {
        if self.is_in_one_piece { u64::MAX } else { 0 }
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe {
            load_behind_header(to, len, |to, len| {
                bpf_probe_read_kernel(to.cast(), len, self.start as *const c_void) == 0
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
    fn flags(self) -> u32 {
        Self::HOOK.direction().epb_flags()
    }
}
