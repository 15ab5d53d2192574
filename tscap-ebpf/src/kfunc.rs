//! The time-stamp counter through a kfunc: one of the kernel, where it has one, or
//! of our module (`kmod`). rustc writes no BTF for functions that are declared
//! only, and no loader resolves them: the call is marked instead, and user space
//! puts the kfunc there before it loads the program.

use tscap_common::config::STAMP_CALL;

/// The counter of this CPU, cycles.
#[inline(always)]
pub fn read() -> u64 {
    // As the helpers of aya are called: by their number.
    let read: unsafe extern "C" fn() -> u64 = unsafe { core::mem::transmute(STAMP_CALL as usize) };
    unsafe { read() }
}
