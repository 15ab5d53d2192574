//! The filter of a capture. Its code is not known here: marked calls stand in its
//! place, as for the kfuncs.

use core::mem::{MaybeUninit, transmute};

use tscap_common::config::{FILTER_CALL, FILTER_SCRATCH_BYTES, FILTER_TAGGED_CALL};

use crate::vlan::Tag;

/// 8-byte aligned.
type Scratch = MaybeUninit<[u64; FILTER_SCRATCH_BYTES / 8]>;

/// Whether a frame is wanted: what the file will hold of it, with the tag.
#[inline(always)]
pub fn accepts<Context>(ctx: *mut Context, tag: Option<Tag>) -> bool {
    let mut scratch = Scratch::uninit();
    let Some(tag) = tag else {
        let verdict: unsafe extern "C" fn(*mut Context, *mut Scratch) -> u64 =
            unsafe { transmute(FILTER_CALL as usize) };
        return unsafe { verdict(ctx, &mut scratch) != 0 };
    };
    let verdict: unsafe extern "C" fn(*mut Context, *mut Scratch, u32) -> u64 =
        unsafe { transmute(FILTER_TAGGED_CALL as usize) };
    unsafe { verdict(ctx, &mut scratch, tag.in_frame()) != 0 }
}
