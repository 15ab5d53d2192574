//! The programs of `tscap compare`: what one read of a clock costs, unrolled, and
//! what it costs on a real frame, between two checkpoints.
#![no_std]
#![no_main]

mod account;
mod copy;
mod counters;
mod filter;
mod frame;
mod hardware;
mod interrupts;
mod kfunc;
mod maps;
mod object;
mod received;
mod record;
mod ring;
mod tsc;
mod vlan;

use aya_ebpf::Global;
use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::helpers::generated::{
    bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_ktime_get_tai_ns,
};
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::Array;
use aya_ebpf::programs::XdpContext;
use tscap_common::compare::{Counts, MOST_SAMPLES, MOST_WORK, Sample, UNROLLED};
use tscap_common::stream::{LENGTH, MAGIC};

#[map]
static SAMPLES: Array<Sample> = Array::with_max_entries(MOST_SAMPLES, 0);

#[map]
static COUNTS: Array<Counts> = Array::with_max_entries(1, 0);

/// Frames on any other CPU are let pass unmeasured: the series has one producer.
#[unsafe(no_mangle)]
static ON_CPU: Global<u32> = Global::new(0);

/// What to do with a frame when it has been measured.
#[unsafe(no_mangle)]
static ACTION: Global<u32> = Global::new(XDP_PASS);

/// Reads besides the one, for the tests of the method.
#[unsafe(no_mangle)]
static MORE_READS: Global<u32> = Global::new(0);

/// Multiplications besides the reads, for the tests of the method.
#[unsafe(no_mangle)]
static MORE_WORK: Global<u32> = Global::new(0);

#[inline(always)]
fn none() -> u64 {
    0
}

#[inline(always)]
fn ktime() -> u64 {
    unsafe { bpf_ktime_get_ns() }
}

#[inline(always)]
fn tai() -> u64 {
    unsafe { bpf_ktime_get_tai_ns() }
}

/// A read between two checkpoints.
struct Between {
    before: u64,
    stamp: u64,
    /// What came of the rest of the work.
    sink: u64,
    after: u64,
}

/// Checkpoint, read, checkpoint.
#[inline(always)]
fn between(read: impl Fn() -> u64) -> Between {
    let more = MORE_READS.load();
    let work = MORE_WORK.load();
    let before = ktime();
    let stamp = read();
    let mut others = 0;
    // At most 8: unrolled by the verifier, which knows the number.
    let mut index = 0;
    while index < 8 && index < more {
        others |= read();
        index += 1;
    }
    // One after the other: each takes the last one's product.
    let mut product = before;
    let mut index = 0;
    while index < MOST_WORK && index < work {
        product = product.wrapping_mul(product);
        index += 1;
    }
    let after = ktime();
    Between {
        before,
        stamp,
        sink: others | product,
        after,
    }
}

/// Measures `read` on a frame.
#[inline(always)]
fn cost(ctx: &XdpContext, read: impl Fn() -> u64) -> u32 {
    cost_by(ctx, || between(read))
}

/// The same with interrupts off from before the first checkpoint until after the
/// second one: what turns them off and on is not in the cost.
#[inline(always)]
fn cost_off(ctx: &XdpContext, read: impl Fn() -> u64) -> u32 {
    cost_by(ctx, || interrupts::off(|| between(read)))
}

/// Looks at the kernel's counters before the first checkpoint and after the second one, so
/// that it is in no cost: a checkpoint reads the TSC behind a fence
/// (`rdtsc_ordered`, arch/x86/include/asm/tsc.h), which no load before it passes.
#[inline(always)]
fn cost_by(ctx: &XdpContext, measure: impl FnOnce() -> Between) -> u32 {
    let before = counters::Before::now();
    let interrupts = counters::interrupts();
    let measured = measure();
    let interrupts = counters::interrupts().wrapping_sub(interrupts);
    let happened = Sample {
        stolen_ns: before.stolen_ns,
        accounted_ns: before.accounted_ns,
        other_softirqs: before.other_softirqs,
        interrupts,
        ..Sample::default()
    };
    keep(ctx, &measured, happened)
}

/// Keeps what was measured on a frame, beside what `happened`.
#[inline(always)]
fn keep(ctx: &XdpContext, measured: &Between, happened: Sample) -> u32 {
    let action = ACTION.load();
    let Some(counts) = COUNTS.get_ptr_mut(0) else {
        return action;
    };
    let counts = unsafe { &mut *counts };
    if unsafe { bpf_get_smp_processor_id() } as u32 != ON_CPU.load() {
        counts.elsewhere += 1;
        return action;
    }
    counts.sink = measured.sink;
    counts.bad += tsc::checked(measured.stamp).is_none() as u64;
    let at = counts.measured;
    counts.measured += 1;
    if at < MOST_SAMPLES as u64
        && let Some(sample) = SAMPLES.get_ptr_mut(at as u32)
    {
        let mut taken = Sample {
            stamp: measured.stamp,
            cost_ns: measured.after.wrapping_sub(measured.before),
            ..happened
        };
        look_at_frame(ctx, &mut taken);
        unsafe { *sample = taken };
    }
    action
}

/// Where the payload of a plain IPv4 frame of `tscap gen` begins.
const PAYLOAD_AT: usize = 42;

#[inline(always)]
fn look_at_frame(ctx: &XdpContext, sample: &mut Sample) {
    let data = ctx.data();
    if data + PAYLOAD_AT + LENGTH > ctx.data_end() {
        return;
    }
    let payload = (data + PAYLOAD_AT) as *const u16;
    let word = |at: usize| u16::from_be(unsafe { *payload.add(at) }) as u64;
    if word(0) != MAGIC as u64 {
        return;
    }
    sample.frame = word(1) << 48 | word(2) << 32 | word(3) << 16 | word(4);
    sample.sent_tsc = word(5) << 32 | word(6) << 16 | word(7);
    sample.sent_tai = word(8) << 32 | word(9) << 16 | word(10);
}

#[xdp(frags)]
pub fn cost_none(ctx: XdpContext) -> u32 {
    cost(&ctx, none)
}

#[xdp(frags)]
pub fn cost_ktime(ctx: XdpContext) -> u32 {
    cost(&ctx, ktime)
}

#[xdp(frags)]
pub fn cost_tai(ctx: XdpContext) -> u32 {
    cost(&ctx, tai)
}

#[xdp(frags)]
pub fn cost_tsc(ctx: XdpContext) -> u32 {
    cost(&ctx, tsc::read)
}

#[xdp(frags)]
pub fn cost_kfunc(ctx: XdpContext) -> u32 {
    cost(&ctx, kfunc::read)
}

#[xdp(frags)]
pub fn cost_ktime_off(ctx: XdpContext) -> u32 {
    cost_off(&ctx, ktime)
}

#[xdp(frags)]
pub fn cost_tsc_off(ctx: XdpContext) -> u32 {
    cost_off(&ctx, tsc::read)
}

#[xdp(frags)]
pub fn cost_kfunc_off(ctx: XdpContext) -> u32 {
    cost_off(&ctx, kfunc::read)
}

/// The whole program of a capture, but for the stamp: the floor of what one costs.
#[xdp(frags)]
pub fn program_none(ctx: XdpContext) -> u32 {
    record::record(
        received::Received::<false>(ctx.ctx),
        Some(0),
        record::Fault::None,
    );
    XDP_PASS
}

macro_rules! eight {
    ($call:expr) => {
        $call | $call | $call | $call | $call | $call | $call | $call
    };
}

/// [`UNROLLED`] reads in a row.
macro_rules! unrolled {
    ($call:expr) => {{
        let read = eight!(eight!($call));
        if let Some(counts) = COUNTS.get_ptr_mut(0) {
            unsafe { (*counts).sink = read };
        }
        XDP_DROP
    }};
}

const _: () = assert!(UNROLLED == 64);

#[xdp(frags)]
pub fn read_none(_ctx: XdpContext) -> u32 {
    unrolled!(none())
}

#[xdp(frags)]
pub fn read_ktime(_ctx: XdpContext) -> u32 {
    unrolled!(ktime())
}

#[xdp(frags)]
pub fn read_tai(_ctx: XdpContext) -> u32 {
    unrolled!(tai())
}

#[xdp(frags)]
pub fn read_tsc(_ctx: XdpContext) -> u32 {
    unrolled!(tsc::read())
}

#[xdp(frags)]
pub fn read_kfunc(_ctx: XdpContext) -> u32 {
    unrolled!(kfunc::read())
}

/// Each of them with interrupts off.
#[xdp(frags)]
pub fn read_ktime_off(_ctx: XdpContext) -> u32 {
    unrolled!(interrupts::off(ktime))
}

#[xdp(frags)]
pub fn read_tsc_off(_ctx: XdpContext) -> u32 {
    unrolled!(interrupts::off(tsc::read))
}

#[xdp(frags)]
pub fn read_kfunc_off(_ctx: XdpContext) -> u32 {
    unrolled!(interrupts::off(kfunc::read))
}
