//! The programs of `tscap capture`: one for each hook and clock, all over the same
//! body. The stamp is the first thing that a program does.
#![no_std]
#![no_main]

mod account;
mod buffer;
mod clock;
mod copy;
mod entered;
mod filter;
mod frame;
mod hardware;
mod kernel;
mod kfunc;
mod maps;
mod object;
#[macro_use]
mod programs;
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

#[inline(always)]
fn take<F: Frame>(frame: F, stamp: Option<u64>) {
    record(frame, stamp, Fault::None);
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
