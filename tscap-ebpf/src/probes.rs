//! Programs for tests and benchmarks: the body without a stamp, bodies with a
//! fault, a program that brackets its stamp with the wall clock, a frame
//! source, and the same work done through `bpf_perf_event_output`.
#![no_std]
#![no_main]

mod account;
mod copy;
mod filter;
mod frame;
mod hardware;
mod kfunc;
mod maps;
mod object;
mod received;
mod record;
mod ring;
mod tsc;
mod vlan;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::Global;
use aya_ebpf::bindings::{BPF_F_CURRENT_CPU, TC_ACT_UNSPEC, xdp_action};
use aya_ebpf::helpers::generated::{
    bpf_ktime_get_ns, bpf_ktime_get_tai_ns, bpf_perf_event_output, bpf_redirect,
    bpf_xdp_get_buff_len,
};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{PerCpuArray, PerfEventArray};
use aya_ebpf::programs::{TcContext, XdpContext};

use crate::received::Received;
use crate::record::{Fault, record};

/// Interface that `probe_redirect` and `probe_forward` send to.
#[unsafe(no_mangle)]
static REDIRECT_TO: Global<u32> = Global::new(0);

#[map]
static EVENTS: PerfEventArray<[u64; 2]> = PerfEventArray::new(0);

/// Packets without and with a time to be sent at.
#[map]
static SEND_TIMES: PerCpuArray<[u64; 2]> = PerCpuArray::with_max_entries(1, 0);

/// The floor: the whole body with a constant in place of the stamp.
#[xdp(frags)]
pub fn probe_no_stamp(ctx: XdpContext) -> u32 {
    record(Received::<false>(ctx.ctx), Some(0), Fault::None);
    xdp_action::XDP_PASS
}

/// Loses frames without counting them.
#[xdp(frags)]
pub fn probe_counts_no_loss(ctx: XdpContext) -> u32 {
    let stamp = unsafe { bpf_ktime_get_ns() };
    record(Received::<false>(ctx.ctx), Some(stamp), Fault::CountsNoLoss);
    xdp_action::XDP_PASS
}

/// Asks for more bytes than a frame has.
#[xdp(frags)]
pub fn probe_copies_too_much(ctx: XdpContext) -> u32 {
    let stamp = unsafe { bpf_ktime_get_ns() };
    record(
        Received::<false>(ctx.ctx),
        Some(stamp),
        Fault::CopiesTooMuch,
    );
    xdp_action::XDP_PASS
}

/// Reads TAI, the stamp, TAI, and leaves both TAI readings in the frame's bytes
/// 14..30, so that a test can hold the converted stamp against them.
#[xdp(frags)]
pub fn probe_bracket_ktime(ctx: XdpContext) -> u32 {
    let before = unsafe { bpf_ktime_get_tai_ns() };
    let stamp = unsafe { bpf_ktime_get_ns() };
    let after = unsafe { bpf_ktime_get_tai_ns() };
    write_bracket(&ctx, before, after);
    record(Received::<false>(ctx.ctx), Some(stamp), Fault::None);
    xdp_action::XDP_PASS
}

/// The same for a TAI stamp.
#[xdp(frags)]
pub fn probe_bracket_tai(ctx: XdpContext) -> u32 {
    let before = unsafe { bpf_ktime_get_tai_ns() };
    let stamp = unsafe { bpf_ktime_get_tai_ns() };
    let after = unsafe { bpf_ktime_get_tai_ns() };
    write_bracket(&ctx, before, after);
    record(Received::<false>(ctx.ctx), Some(stamp), Fault::None);
    xdp_action::XDP_PASS
}

/// The same for a TSC stamp.
#[xdp(frags)]
pub fn probe_bracket_tsc(ctx: XdpContext) -> u32 {
    let before = unsafe { bpf_ktime_get_tai_ns() };
    let stamp = tsc::read();
    let after = unsafe { bpf_ktime_get_tai_ns() };
    write_bracket(&ctx, before, after);
    record(Received::<false>(ctx.ctx), tsc::checked(stamp), Fault::None);
    xdp_action::XDP_PASS
}

/// The same for a TSC stamp by a kfunc.
#[xdp(frags)]
pub fn probe_bracket_kfunc(ctx: XdpContext) -> u32 {
    let before = unsafe { bpf_ktime_get_tai_ns() };
    let stamp = kfunc::read();
    let after = unsafe { bpf_ktime_get_tai_ns() };
    write_bracket(&ctx, before, after);
    record(Received::<false>(ctx.ctx), Some(stamp), Fault::None);
    xdp_action::XDP_PASS
}

/// Three clocks on one frame: TAI, CLOCK_MONOTONIC, the TSC as the stamp,
/// CLOCK_MONOTONIC, TAI; the four others in the frame's bytes 14..46.
#[xdp(frags)]
pub fn probe_three_clocks(ctx: XdpContext) -> u32 {
    let tai_before = unsafe { bpf_ktime_get_tai_ns() };
    let mono_before = unsafe { bpf_ktime_get_ns() };
    let stamp = tsc::read();
    let mono_after = unsafe { bpf_ktime_get_ns() };
    let tai_after = unsafe { bpf_ktime_get_tai_ns() };
    write_bracket(&ctx, tai_before, tai_after);
    let data = ctx.data();
    if data + 46 <= ctx.data_end() {
        unsafe {
            ((data + 30) as *mut [u8; 8]).write(mono_before.to_ne_bytes());
            ((data + 38) as *mut [u8; 8]).write(mono_after.to_ne_bytes());
        }
    }
    record(Received::<false>(ctx.ctx), tsc::checked(stamp), Fault::None);
    xdp_action::XDP_PASS
}

#[inline(always)]
fn write_bracket(ctx: &XdpContext, before: u64, after: u64) {
    let data = ctx.data();
    if data + 30 <= ctx.data_end() {
        unsafe {
            ((data + 14) as *mut [u8; 8]).write(before.to_ne_bytes());
            ((data + 22) as *mut [u8; 8]).write(after.to_ne_bytes());
        }
    }
}

/// What most tools do: stamp, lengths and frame by `bpf_perf_event_output`.
#[xdp(frags)]
pub fn probe_perf_output(ctx: XdpContext) -> u32 {
    let stamp = unsafe { bpf_ktime_get_ns() };
    let origlen = unsafe { bpf_xdp_get_buff_len(ctx.ctx) };
    let caplen = origlen.min(u64::from(maps::SNAPLEN.load()));
    let mut header = [stamp, origlen << 32 | caplen];
    let flags = caplen << 32 | BPF_F_CURRENT_CPU;
    unsafe {
        bpf_perf_event_output(
            ctx.as_ptr(),
            (&raw const EVENTS).cast_mut().cast(),
            flags,
            header.as_mut_ptr().cast(),
            16,
        );
    }
    xdp_action::XDP_PASS
}

/// Sends the frame out of `REDIRECT_TO`: with live frames, a generator.
#[xdp]
pub fn probe_redirect(_ctx: XdpContext) -> u32 {
    unsafe { bpf_redirect(REDIRECT_TO.load(), 0) as u32 }
}

/// Sends the frame out of `REDIRECT_TO`, behind programs at XDP: a device that costs little.
#[classifier]
pub fn probe_forward(_ctx: TcContext) -> i32 {
    unsafe { bpf_redirect(REDIRECT_TO.load(), 0) as i32 }
}

/// Lets every frame pass: a veth peer must have a program to take redirects.
#[xdp(frags)]
pub fn probe_pass(_ctx: XdpContext) -> u32 {
    xdp_action::XDP_PASS
}

/// Reads the stamp that `tscap_ktime` reads, stores it, and lets every frame pass.
#[xdp(frags)]
pub fn probe_stamp(_ctx: XdpContext) -> u32 {
    let stamp = unsafe { bpf_ktime_get_ns() };
    // Never a stamp, so that the action is the same and the stamp is used.
    if stamp == 0 {
        return xdp_action::XDP_ABORTED;
    }
    xdp_action::XDP_PASS
}

/// Does nothing: the cost of the harness alone.
#[xdp(frags)]
pub fn probe_drop(_ctx: XdpContext) -> u32 {
    xdp_action::XDP_DROP
}

/// At tcx egress: counts packets by whether a queueing discipline finds a time in them, which
/// `fq` takes for the time to be sent at.
#[classifier]
pub fn probe_send_time(ctx: TcContext) -> i32 {
    let has_time = unsafe { (*ctx.skb.skb).tstamp != 0 };
    if let Some(counts) = SEND_TIMES.get_ptr_mut(0) {
        unsafe { (*counts)[has_time as usize] += 1 };
    }
    TC_ACT_UNSPEC
}
