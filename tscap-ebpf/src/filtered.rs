//! An IP packet at a hook of netfilter (`nf_hook_run_bpf` in net/netfilter/nf_bpf_link.c).

use core::ffi::c_void;
use core::mem::{MaybeUninit, transmute};

use aya_ebpf::helpers::generated::{bpf_dynptr_read, bpf_probe_read_kernel};
use tscap_common::config::DYNPTR_CALL;
use tscap_common::hook::Hook;
use tscap_common::kernel_field::KernelField;

use crate::frame::{Frame, own_slot};
use crate::kernel::{constant, is_own_index, read};
use crate::packet::{HEADER, LEAST, load_behind_header};
use crate::vlan::Tag;

/// `struct bpf_nf_ctx`.
#[repr(C)]
pub struct Context {
    state: *const c_void,
    buffer: *const c_void,
}

/// `struct bpf_dynptr`, of the whole packet in all its buffers.
type Bytes = MaybeUninit<[u64; 2]>;

/// An IP packet.
#[derive(Clone, Copy)]
pub struct Filtered {
    buffer: *const c_void,
    length: u32,
    bytes: *mut Bytes,
}

/// Does `work` with the packet if it was received by the program's own interface. The hook is
/// that of one network namespace.
#[inline(always)]
pub fn with_own(ctx: *const Context, work: impl FnOnce(Filtered)) {
    let (state, buffer) = unsafe { ((*ctx).state, (*ctx).buffer) };
    let device = read(KernelField::HookDevice, state) as *const c_void;
    if !is_own_index(read(KernelField::Index, device) as u32) {
        return;
    }
    let mut bytes = Bytes::uninit();
    let dynptr: unsafe extern "C" fn(*const c_void, u64, *mut c_void) -> u64 =
        unsafe { transmute(DYNPTR_CALL as usize) };
    // Where it fails, so does each read.
    unsafe { dynptr(buffer, 0, (&raw mut bytes).cast()) };
    work(Filtered {
        buffer,
        length: read(KernelField::Length, buffer) as u32,
        bytes: &mut bytes,
    });
}

impl Frame for Filtered {
    const HOOK: Hook = Hook::Netfilter;
    const LEAST: u64 = LEAST;
    /// No program there can look into the first buffer.
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
        HEADER + u64::from(self.length)
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        (0, 0)
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe {
            load_behind_header(to, len, |to, len| {
                bpf_dynptr_read(to.cast(), len, self.bytes.cast(), 0, 0) == 0
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
        let shared = read(KernelField::Head, self.buffer) + read(KernelField::End, self.buffer);
        let at = shared + u64::from(constant(KernelField::Segments.call()));
        let mut segments = 0_u16;
        let to = (&raw mut segments).cast();
        unsafe { bpf_probe_read_kernel(to, 2, at as *const c_void) };
        segments.into()
    }

    #[inline(always)]
    fn flags(self) -> u32 {
        Self::HOOK.direction().epb_flags()
    }
}
