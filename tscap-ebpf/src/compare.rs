//! The programs of `tscap compare`: what one read of a clock costs, unrolled, and
//! what it costs on a real frame, between two checkpoints.
#![no_std]
#![no_main]

mod tsc;

use aya_ebpf::Global;
use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::helpers::generated::{
    bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_ktime_get_tai_ns,
};
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::Array;
use aya_ebpf::programs::XdpContext;
use tscap_common::compare::{SERIES_LENGTH, Series, UNROLLED};

/// The frames' values, in order.
#[map]
static SERIES: Array<Series> = Array::with_max_entries(1, 0);

/// Frames on any other CPU are let pass unmeasured: the series has one producer.
#[unsafe(no_mangle)]
static ON_CPU: Global<u32> = Global::new(0);

/// What to do with a frame when it has been measured.
#[unsafe(no_mangle)]
static ACTION: Global<u32> = Global::new(XDP_PASS);

/// Reads besides the one, for the tests of the method.
#[unsafe(no_mangle)]
static MORE_READS: Global<u32> = Global::new(0);

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

/// Measures `read` on a frame: checkpoint, read, checkpoint.
#[inline(always)]
fn cost(read: impl Fn() -> u64) -> u32 {
    let action = ACTION.load();
    if unsafe { bpf_get_smp_processor_id() } as u32 != ON_CPU.load() {
        return action;
    }
    let more = MORE_READS.load();
    let before = ktime();
    let stamp = read();
    let mut others = 0;
    // At most 8: unrolled by the verifier, which knows the number.
    let mut index = 0;
    while index < 8 && index < more {
        others |= read();
        index += 1;
    }
    let after = ktime();
    if let Some(series) = SERIES.get_ptr_mut(0) {
        unsafe {
            // A stamp that nobody uses would not be read.
            (*series).unused = stamp | others;
            let at = (*series).count as usize;
            (*series).count += 1;
            if at < SERIES_LENGTH {
                (*series).values[at] = after.wrapping_sub(before) as u32;
            }
        }
    }
    action
}

#[xdp(frags)]
pub fn cost_none(_ctx: XdpContext) -> u32 {
    cost(none)
}

#[xdp(frags)]
pub fn cost_ktime(_ctx: XdpContext) -> u32 {
    cost(ktime)
}

#[xdp(frags)]
pub fn cost_tai(_ctx: XdpContext) -> u32 {
    cost(tai)
}

#[xdp(frags)]
pub fn cost_tsc(_ctx: XdpContext) -> u32 {
    cost(tsc::read)
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
        if let Some(series) = SERIES.get_ptr_mut(0) {
            unsafe { (*series).unused = read };
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

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 4] = *b"GPL\0";
