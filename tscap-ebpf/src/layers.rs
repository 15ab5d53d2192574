//! The programs of `tscap qos --layers`: at each layer that a received packet goes through they
//! record its key, as those of `tscap delay` do. All stamp by ktime, the one clock that can be
//! read at every hook.
#![no_std]
#![no_main]

mod account;
mod buffer;
#[allow(dead_code, reason = "other objects have the other clocks")]
mod clock;
mod copy;
mod delivered;
mod filter;
mod filtered;
mod frame;
mod hardware;
mod kernel;
#[allow(dead_code, reason = "other objects have the other clocks")]
mod kfunc;
mod maps;
mod object;
mod packet;
#[macro_use]
mod programs;
mod received;
mod ring;
mod sight;
mod taken;
#[allow(dead_code, reason = "other objects have the other clocks")]
mod tsc;
mod verdict;
mod vlan;

use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::macros::{cgroup_skb, classifier, fexit, xdp};
use aya_ebpf::programs::{FExitContext, SkBuffContext, TcContext, XdpContext};

use crate::buffer::Buffer;
use crate::clock::{Clock, Ktime};
use crate::delivered::Delivered;
use crate::frame::Frame;
use crate::received::Received;
use crate::sight::sight;
use crate::taken::Taken;
use crate::verdict::verdict;

/// `NF_ACCEPT` (include/uapi/linux/netfilter.h).
const ACCEPT: i32 = 1;
/// What lets a socket have a packet.
const DELIVER: i32 = 1;

#[inline(always)]
fn take<F: Frame>(frame: F, stamp: Option<u64>) {
    sight::<true, _>(frame, stamp);
}

at_xdp! {
    tscap_ktime: Ktime;
}

at_tc! {
    Buffer<false>:
    tscap_in_ktime: Ktime;
}

/// At a hook of netfilter. aya knows no section of such programs: user space takes this one for
/// theirs.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/tscap_netfilter")]
pub extern "C" fn tscap_netfilter(ctx: *const filtered::Context) -> i32 {
    let stamp = Ktime::read();
    filtered::with_own(ctx, |frame| take(frame, stamp));
    ACCEPT
}

#[cgroup_skb(ingress)]
pub fn tscap_cgroup(ctx: SkBuffContext) -> i32 {
    let stamp = Ktime::read();
    if let Some(frame) = Delivered::own(&ctx) {
        take(frame, stamp);
    }
    DELIVER
}

#[fexit(function = "__skb_recv_udp")]
pub fn tscap_taken(ctx: FExitContext) -> i32 {
    let stamp = Ktime::read();
    if let Some(frame) = Taken::own(&ctx) {
        take(frame, stamp);
    }
    0
}
