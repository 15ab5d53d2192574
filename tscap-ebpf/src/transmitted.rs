//! A socket buffer at the tracepoint `net_dev_start_xmit`: the last place before the
//! driver, behind the queueing discipline. The tracepoint is that of all devices of the
//! machine, so that a program has to find its own device's frames.

use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of, transmute};

use aya_ebpf::helpers::generated::{bpf_dynptr_read, bpf_probe_read_kernel};
use aya_ebpf::programs::BtfTracePointContext;
use tscap_common::block::{FLAGS_CHECKSUM_NOT_READY, FLAGS_SEGMENTED_LATER};
use tscap_common::config::{BUFFER_CHECKSUM_CALL, DYNPTR_CALL};
use tscap_common::hook::Hook;
use tscap_common::kernel_field::KernelField;

use crate::filter;
use crate::frame::{Frame, own_slot};
use crate::kernel::{constant, is_own_index, is_own_namespace, read};
use crate::vlan::Tag;

/// What a filter gets as its context: `FrameAccess::TRANSMITTED` of user space knows it.
#[repr(C)]
pub struct View {
    /// `struct bpf_dynptr`, of the whole frame in all its buffers.
    bytes: MaybeUninit<[u64; 2]>,
    length: u32,
    interface: u32,
}

const _: () = assert!(offset_of!(View, length) == 16);
const _: () = assert!(offset_of!(View, interface) == 20);

/// A socket buffer on its way to the driver.
#[derive(Clone, Copy)]
pub struct Transmitted {
    buffer: *const c_void,
    view: *mut View,
}

/// Does `work` with the frame if it leaves by the program's own interface.
#[inline(always)]
pub fn with_own(ctx: &BtfTracePointContext, work: impl FnOnce(Transmitted)) {
    let (buffer, device): (*const c_void, *const c_void) = (ctx.arg(0), ctx.arg(1));
    let interface = read(KernelField::Index, device) as u32;
    let namespace = read(KernelField::Namespace, device) as *const c_void;
    if !is_own_index(interface) || !is_own_namespace(namespace) {
        return;
    }
    let mut view = View {
        bytes: MaybeUninit::uninit(),
        length: read(KernelField::Length, buffer) as u32,
        interface,
    };
    let dynptr: unsafe extern "C" fn(*const c_void, u64, *mut c_void) -> u64 =
        unsafe { transmute(DYNPTR_CALL as usize) };
    // Where it fails, so does each read.
    unsafe { dynptr(buffer, 0, (&raw mut view.bytes).cast()) };
    work(Transmitted {
        buffer,
        view: &mut view,
    });
}

impl Frame for Transmitted {
    const HOOK: Hook = Hook::Transmit;
    /// Of an interface without a header of the link layer.
    const LEAST: u64 = 1;
    /// Programs at tracepoints can't look into the first buffer.
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
        unsafe { u64::from((*self.view).length) }
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        (0, 0)
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe {
            let bytes = &raw mut (*self.view).bytes;
            bpf_dynptr_read(to.cast(), len, bytes.cast(), 0, 0) == 0
        }
    }

    #[inline(always)]
    fn tag(self) -> Option<Tag> {
        let protocol = read(KernelField::VlanProtocol, self.buffer) as u16;
        let control = read(KernelField::VlanControl, self.buffer) as u16;
        (protocol | control != 0).then_some(Tag { protocol, control })
    }

    #[inline(always)]
    fn is_wanted(self, tag: Option<Tag>) -> bool {
        filter::accepts(self.view, tag)
    }

    #[inline(always)]
    fn flags(self) -> u32 {
        let is_partial: unsafe extern "C" fn(*const c_void) -> u64 =
            unsafe { transmute(BUFFER_CHECKSUM_CALL as usize) };
        let mut flags = Self::HOOK.direction().epb_flags();
        if unsafe { is_partial(self.buffer) } != 0 {
            flags |= FLAGS_CHECKSUM_NOT_READY;
        }
        let shared = read(KernelField::Head, self.buffer) + read(KernelField::End, self.buffer);
        let at = shared + u64::from(constant(KernelField::SegmentSize.call()));
        let mut segment = 0_u16;
        let to = (&raw mut segment).cast();
        if unsafe { bpf_probe_read_kernel(to, 2, at as *const c_void) } == 0 && segment != 0 {
            flags |= FLAGS_SEGMENTED_LATER;
        }
        flags
    }
}
