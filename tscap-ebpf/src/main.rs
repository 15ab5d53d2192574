//! The XDP programs of `tscap capture`: one for each stamp source, all over the
//! same body. The stamp is the first thing that a program does.
#![no_std]
#![no_main]

mod copy;
mod kfunc;
mod maps;
mod object;
mod record;
mod ring;
mod tsc;
mod vlan;

use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_ktime_get_tai_ns};
use aya_ebpf::{macros::xdp, programs::XdpContext};

use crate::record::{Fault, record};

/// CLOCK_MONOTONIC, the kernel's fast accessor.
#[xdp(frags)]
pub fn tscap_ktime(ctx: XdpContext) -> u32 {
    let stamp = unsafe { bpf_ktime_get_ns() };
    record(&ctx, Some(stamp), vlan::read, Fault::None)
}

/// CLOCK_TAI, kernel 6.1 and later.
#[xdp(frags)]
pub fn tscap_tai(ctx: XdpContext) -> u32 {
    let stamp = unsafe { bpf_ktime_get_tai_ns() };
    record(&ctx, Some(stamp), vlan::read, Fault::None)
}

/// The TSC by the perf event of this CPU, kernel 6.16 and later.
#[xdp(frags)]
pub fn tscap_tsc_perf(ctx: XdpContext) -> u32 {
    let stamp = tsc::read();
    record(&ctx, tsc::checked(stamp), vlan::read, Fault::None)
}

/// The TSC by a kfunc.
#[xdp(frags)]
pub fn tscap_tsc_kfunc(ctx: XdpContext) -> u32 {
    let stamp = kfunc::read();
    record(&ctx, Some(stamp), vlan::read, Fault::None)
}
