//! The stamp that an interface's own clock gave a frame when it arrived.
//! `bpf_xdp_metadata_rx_timestamp` (kernel 6.3) tells it to a program that is bound to the
//! device; the call is marked as that of the [counter](crate::kfunc) is.

use core::mem::transmute;

use aya_ebpf::bindings::xdp_md;
use tscap_common::config::HARDWARE_STAMP_CALL;

/// The stamp of a frame at XDP, if it has one. A driver that has none to tell says so by an
/// error, or by 0 (`veth_xdp_rx_timestamp`, drivers/net/veth.c).
#[inline(always)]
pub fn read(ctx: *mut xdp_md) -> Option<u64> {
    let kfunc: unsafe extern "C" fn(*mut xdp_md, *mut u64) -> i64 =
        unsafe { transmute(HARDWARE_STAMP_CALL as usize) };
    // Not left uninitialised: LLVM reads it before it looks at the result.
    let mut stamp = 0;
    let error = unsafe { kfunc(ctx, &mut stamp) };
    (error as i32 == 0 && stamp != 0).then_some(stamp)
}
