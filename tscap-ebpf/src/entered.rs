//! A frame at the entry of somebody else's XDP program.

use core::ffi::c_void;
use core::mem::{MaybeUninit, transmute};

use aya_ebpf::helpers::generated::{bpf_probe_read_kernel, bpf_xdp_get_buff_len};
use aya_ebpf::programs::FEntryContext;
use tscap_common::block::MIN_FRAME;
use tscap_common::config::{ENTERED_FRAME_CALL, OWN_INDEX_CALL, OWN_NETNS_CALL};
use tscap_common::entry::EnteredFrame;
use tscap_common::hook::Hook;

use crate::filter;
use crate::frame::{Frame, own_slot};
use crate::vlan::Tag;

/// A frame of the interface that is captured.
#[derive(Clone, Copy)]
pub struct Entered<'a>(&'a EnteredFrame);

impl<'a> Entered<'a> {
    /// The frame that the XDP program gets, filled into `frame`. `None` if another interface
    /// has received it: several can share the program.
    #[inline(always)]
    pub fn own(ctx: &FEntryContext, frame: &'a mut MaybeUninit<EnteredFrame>) -> Option<Self> {
        let xdp: *mut c_void = ctx.arg(0);
        let fill: unsafe extern "C" fn(*mut c_void, *mut EnteredFrame) -> u64 =
            unsafe { transmute(ENTERED_FRAME_CALL as usize) };
        unsafe { fill(xdp, frame.as_mut_ptr()) };
        let frame = unsafe { frame.assume_init_mut() };
        if frame.ifindex != constant::<OWN_INDEX_CALL>()
            || frame.netns != constant::<OWN_NETNS_CALL>()
        {
            return None;
        }
        frame.len = unsafe { bpf_xdp_get_buff_len(xdp.cast()) as u32 };
        Some(Self(frame))
    }
}

/// What user space puts in the place of the call.
#[inline(always)]
fn constant<const CALL: u32>() -> u32 {
    let constant: unsafe extern "C" fn() -> u64 = unsafe { transmute(CALL as usize) };
    unsafe { constant() as u32 }
}

impl Frame for Entered<'_> {
    const HOOK: Hook = Hook::XdpEntry;
    const LEAST: u64 = MIN_FRAME as u64;
    /// To the verifier its bytes are any memory of the kernel, which a helper reads.
    const MOST_BY_WORDS: u64 = 0;

    #[inline(always)]
    fn slot(self) -> u32 {
        own_slot()
    }

    #[inline(always)]
    fn queue(self) -> Option<u32> {
        Some(self.0.queue as u32)
    }

    #[inline(always)]
    fn len(self) -> u64 {
        self.0.len.into()
    }

    #[inline(always)]
    fn first_buffer(self) -> (u64, u64) {
        (self.0.data, self.0.data + u64::from(self.0.first_len))
    }

    /// No helper gives a tracing program the bytes of the other buffers.
    #[inline(always)]
    fn reach(self) -> u64 {
        self.0.first_len.into()
    }

    #[inline(always)]
    unsafe fn load(self, to: *mut u8, len: u32) -> bool {
        unsafe { bpf_probe_read_kernel(to.cast(), len, self.0.data as *const c_void) == 0 }
    }

    /// The kernel tells it to XDP programs only.
    #[inline(always)]
    fn tag(self) -> Option<Tag> {
        None
    }

    #[inline(always)]
    fn is_wanted(self, tag: Option<Tag>) -> bool {
        filter::accepts(core::ptr::from_ref(self.0).cast_mut(), tag)
    }

    #[inline(always)]
    fn flags(self) -> u32 {
        Self::HOOK.direction().epb_flags()
    }
}
