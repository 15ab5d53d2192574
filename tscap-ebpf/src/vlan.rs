//! The VLAN tag that a device, or the network stack before it, took off a frame: it
//! travels beside the frame's bytes. `bpf_xdp_metadata_rx_vlan_tag` (kernel 6.8) tells
//! it to a program that is bound to a device; the call is marked as that of the
//! [counter](crate::kfunc) is.

use core::mem::transmute;

use aya_ebpf::bindings::xdp_md;
use tscap_common::config::VLAN_TAG_CALL;

/// Length of a tag, bytes.
pub const LENGTH: u64 = 4;
/// Where the tag stands in a frame: behind both addresses.
const OFFSET: usize = 12;
/// Least bytes of a tagged frame that [`put_back`] writes: addresses and tag.
pub const LEAST: u64 = OFFSET as u64 + LENGTH;

/// A tag.
#[derive(Clone, Copy)]
pub struct Tag {
    /// EtherType of the tag, in network byte order.
    pub protocol: u16,
    /// Priority, drop eligibility and VLAN number, in host byte order.
    pub control: u16,
}

impl Tag {
    /// Its bytes as they lie in a frame, in a word of memory.
    #[inline(always)]
    pub fn in_frame(self) -> u32 {
        let [first, second] = self.protocol.to_ne_bytes();
        let [third, fourth] = self.control.to_be_bytes();
        u32::from_ne_bytes([first, second, third, fourth])
    }
}

/// The tag beside a frame at XDP, if there is one.
#[inline(always)]
pub fn read(ctx: *mut xdp_md) -> Option<Tag> {
    let kfunc: unsafe extern "C" fn(*mut xdp_md, *mut u16, *mut u16) -> i64 =
        unsafe { transmute(VLAN_TAG_CALL as usize) };
    // Not left uninitialised: LLVM reads them before it looks at the result, which the
    // verifier of 6.1 refuses.
    let (mut protocol, mut control) = (0, 0);
    let error = unsafe { kfunc(ctx, &mut protocol, &mut control) };
    (error as i32 == 0).then_some(Tag { protocol, control })
}

/// Puts a tag into a frame whose bytes begin [`LENGTH`] behind `data`.
///
/// # Safety
/// `data` must be aligned to 4 and have room for [`LEAST`] bytes.
#[inline(always)]
pub unsafe fn put_back(data: *mut u8, tag: Tag) {
    unsafe {
        let words = data.cast::<u32>();
        words.write(words.add(1).read());
        words.add(1).write(words.add(2).read());
        words.add(2).write(words.add(3).read());
        data.add(OFFSET).cast::<u32>().write(tag.in_frame());
    }
}
