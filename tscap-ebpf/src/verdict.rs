//! What a program at XDP answers.

use core::mem::transmute;

use tscap_common::config::VERDICT_CALL;

/// What becomes of each frame, whatever has been made of it: user space puts the constant in
/// the place of the call.
#[inline(always)]
pub fn verdict() -> u32 {
    let verdict: unsafe extern "C" fn() -> u64 = unsafe { transmute(VERDICT_CALL as usize) };
    unsafe { verdict() as u32 }
}
