//! The filter of a capture. Its code is not known here: a marked call stands in its
//! place, as for the kfuncs.

use core::mem::{MaybeUninit, transmute};

use aya_ebpf::bindings::xdp_md;
use tscap_common::config::{FILTER_CALL, FILTER_SCRATCH_BYTES};

/// 8-byte aligned.
type Scratch = MaybeUninit<[u64; FILTER_SCRATCH_BYTES / 8]>;

/// Whether the frame is wanted.
#[inline(always)]
pub fn accepts(ctx: *mut xdp_md) -> bool {
    let mut scratch = Scratch::uninit();
    let verdict: unsafe extern "C" fn(*mut xdp_md, *mut Scratch) -> u64 =
        unsafe { transmute(FILTER_CALL as usize) };
    unsafe { verdict(ctx, &mut scratch) != 0 }
}
