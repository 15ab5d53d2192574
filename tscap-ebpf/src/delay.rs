//! The programs of `tscap delay`: as those of `tscap capture` one for each hook and clock, with
//! the same names, but they record keys of packets in the place of frames.
#![no_std]
#![no_main]

mod account;
mod buffer;
mod clock;
mod copy;
mod filter;
mod frame;
mod hardware;
mod kfunc;
mod maps;
mod object;
#[macro_use]
mod programs;
mod received;
mod ring;
mod sight;
mod tapped;
mod tsc;
mod verdict;
mod vlan;

use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::helpers::generated::bpf_clone_redirect;
use aya_ebpf::macros::{classifier, map, socket_filter, xdp};
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::{SkBuffContext, TcContext, XdpContext};

use crate::buffer::Buffer;
use crate::clock::{Clock, Ktime, Tai, TscKfunc, TscPerf};
use crate::frame::{Frame, own_slot};
use crate::received::Received;
use crate::sight::sight;
use crate::tapped::Tapped;
use crate::verdict::verdict;

#[inline(always)]
fn take<F: Frame>(frame: F, stamp: Option<u64>) {
    sight::<false, _>(frame, stamp);
}

/// Every frame is refused: the socket gets none.
macro_rules! at_tap {
    ($($program:ident: $clock:ty;)*) => {$(
        #[socket_filter]
        pub fn $program(ctx: SkBuffContext) -> i64 {
            let stamp = <$clock>::read();
            if let Some(frame) = Tapped::sent(&ctx) {
                take(frame, stamp);
            }
            0
        }

        named!(Tapped, $clock, $program);
    )*};
}

at_xdp! {
    tscap_ktime: Ktime;
    tscap_tai: Tai;
    tscap_tsc_perf: TscPerf;
    tscap_tsc_kfunc: TscKfunc;
}

at_tc! {
    Buffer<false>:
    tscap_in_ktime: Ktime;
    tscap_in_tai: Tai;
    tscap_in_perf: TscPerf;
    tscap_in_kfunc: TscKfunc;
}

at_tc! {
    Buffer<true>:
    tscap_out_ktime: Ktime;
    tscap_out_tai: Tai;
    tscap_out_perf: TscPerf;
    tscap_out_kfunc: TscKfunc;
}

at_tap! {
    tscap_tap_ktime: Ktime;
    tscap_tap_tai: Tai;
    tscap_tap_perf: TscPerf;
    tscap_tap_kfunc: TscKfunc;
}

/// Copies that could not be made, or that their interface did not take.
#[map]
static MIRROR_LOSSES: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Sends a copy of each frame to the interface with the number that user space puts in the
/// place of the program's slot: a mirrored port.
#[classifier]
pub fn tscap_mirror(ctx: TcContext) -> i32 {
    let sent = unsafe { bpf_clone_redirect(ctx.skb.skb, own_slot(), 0) };
    if sent != 0
        && let Some(losses) = MIRROR_LOSSES.get_ptr_mut(0)
    {
        unsafe { *losses += 1 };
    }
    TC_ACT_UNSPEC
}
