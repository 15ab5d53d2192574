//! The programs of `tscap capture`: one for each hook and clock, all over the same
//! body. The stamp is the first thing that a program does.
#![no_std]
#![no_main]

mod buffer;
mod clock;
mod copy;
mod entered;
mod filter;
mod frame;
mod kfunc;
mod maps;
mod object;
mod received;
mod record;
mod ring;
mod transmitted;
mod tsc;
mod verdict;
mod vlan;

use core::mem::MaybeUninit;

use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::macros::{btf_tracepoint, classifier, fentry, xdp};
use aya_ebpf::programs::{BtfTracePointContext, FEntryContext, TcContext, XdpContext};

use crate::buffer::Buffer;
use crate::clock::{Clock, Ktime, Tai, TscKfunc, TscPerf};
use crate::entered::Entered;
use crate::frame::Frame;
use crate::received::Received;
use crate::record::{Fault, record};
use crate::transmitted::{Transmitted, with_own};
use crate::verdict::verdict;

/// Checks that a program has the name that [`tscap_common::hook::Hook::program`] gives it.
macro_rules! named {
    ($frame:ty, $clock:ty, $program:ident) => {
        const _: () = {
            let name = <$frame>::HOOK.program(<$clock>::DOMAIN);
            assert!(is_same(name.as_bytes(), stringify!($program).as_bytes()));
        };
    };
}

macro_rules! at_xdp {
    ($($program:ident: $clock:ty;)*) => {$(
        #[xdp(frags)]
        pub fn $program(ctx: XdpContext) -> u32 {
            let stamp = <$clock>::read();
            record(Received::<true>(ctx.ctx), stamp, Fault::None);
            verdict()
        }

        named!(Received<true>, $clock, $program);
    )*};
}

/// Frames of other interfaces that share the XDP program are left alone.
macro_rules! at_entry {
    ($($program:ident: $clock:ty;)*) => {$(
        #[fentry]
        pub fn $program(ctx: FEntryContext) -> i32 {
            let stamp = <$clock>::read();
            let mut frame = MaybeUninit::uninit();
            if let Some(frame) = Entered::own(&ctx, &mut frame) {
                record(frame, stamp, Fault::None);
            }
            0
        }

        named!(Entered<'_>, $clock, $program);
    )*};
}

/// At tcx the next program runs only after `TC_ACT_UNSPEC` (`TCX_NEXT`).
macro_rules! at_tc {
    ($frame:ty: $($program:ident: $clock:ty;)*) => {$(
        #[classifier]
        pub fn $program(ctx: TcContext) -> i32 {
            let stamp = <$clock>::read();
            record(<$frame>::of(&ctx), stamp, Fault::None);
            TC_ACT_UNSPEC
        }

        named!($frame, $clock, $program);
    )*};
}

macro_rules! before_driver {
    ($($program:ident: $clock:ty;)*) => {$(
        #[btf_tracepoint(function = "net_dev_start_xmit")]
        pub fn $program(ctx: BtfTracePointContext) -> i32 {
            let stamp = <$clock>::read();
            with_own(&ctx, |frame| record(frame, stamp, Fault::None));
            0
        }

        named!(Transmitted, $clock, $program);
    )*};
}

at_xdp! {
    tscap_ktime: Ktime;
    tscap_tai: Tai;
    tscap_tsc_perf: TscPerf;
    tscap_tsc_kfunc: TscKfunc;
}

at_entry! {
    tscap_pre_ktime: Ktime;
    tscap_pre_tai: Tai;
    tscap_pre_perf: TscPerf;
    tscap_pre_kfunc: TscKfunc;
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

before_driver! {
    tscap_tx_ktime: Ktime;
    tscap_tx_tai: Tai;
    tscap_tx_perf: TscPerf;
    tscap_tx_kfunc: TscKfunc;
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [second, others @ ..]) = (one, other)
        && *first == *second
    {
        (one, other) = (rest, others);
    }
    one.is_empty() && other.is_empty()
}
