//! The frame generator of `tscap gen`: run by `BPF_PROG_TEST_RUN` with live
//! frames, once a frame, it waits until the frame is due, writes headers and
//! payload, and sends it out of an interface.
//!
//! The whole header is written each time: the kernel uses the pages again as
//! the receiver left them.
#![no_std]
#![no_main]

mod kfunc;
mod object;
mod tsc;

use core::ffi::{c_long, c_void};

use aya_ebpf::Global;
use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_REDIRECT};
use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_ktime_get_tai_ns, bpf_loop};
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, DevMap};
use aya_ebpf::programs::XdpContext;
use tscap_common::gaps::{BUCKETS, bucket_of};
use tscap_common::generator::{
    BULK, Gaps, Orders, Sending, TSC_BY_KFUNC, TSC_BY_NOTHING, TSC_BY_PERF,
};
use tscap_common::stream::{FIRST_PORT, LENGTH, STAMP_MASK, StreamHeader, udp_checksum};

#[map]
static ORDERS: Array<Orders> = Array::with_max_entries(1, 0);

#[map]
static SENDING: Array<Sending> = Array::with_max_entries(1, 0);

/// The interface: looked up once, not for each frame, and gone from here when
/// it goes.
#[map]
static TARGET: DevMap = DevMap::with_max_entries(1, 0);

#[map]
static STOP: Array<u32> = Array::with_max_entries(1, 0);

#[map]
static GAPS: Array<Gaps> = Array::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static PAYLOAD_AT: Global<u32> = Global::new(42);

#[unsafe(no_mangle)]
static TSC_BY: Global<u32> = Global::new(TSC_BY_NOTHING);

/// Readings of the clock that a wait takes at most: 10 ms and more.
const LONGEST_SPIN: u32 = 1 << 20;

/// Sends a frame when it is due.
#[xdp]
pub fn tscap_send_paced(ctx: XdpContext) -> u32 {
    let (Some(orders), Some(sending)) = (ORDERS.get(0), SENDING.get_ptr_mut(0)) else {
        return XDP_DROP;
    };
    let sending = unsafe { &mut *sending };
    if is_over(sending) {
        return XDP_DROP;
    }
    if sending.due_ns == 0 {
        sending.due_ns = unsafe { bpf_ktime_get_ns() };
    }
    let mut spin = Spin {
        due_ns: sending.due_ns,
        now_ns: 0,
    };
    unsafe {
        bpf_loop(
            LONGEST_SPIN,
            look_at_clock as *mut c_void,
            (&raw mut spin).cast(),
            0,
        );
    }
    let now_ns = spin.now_ns;
    if now_ns.wrapping_sub(sending.due_ns) > orders.period_ns {
        sending.late += 1;
    }
    read_stamps(orders, sending);
    let action = send(&ctx, orders, sending);
    if action == XDP_REDIRECT {
        note_gap(orders, sending, now_ns);
    }
    let (fraction, carry) = sending.due_fraction.overflowing_add(orders.period_fraction);
    sending.due_fraction = fraction;
    sending.due_ns = sending.due_ns.wrapping_add(orders.period_ns + carry as u64);
    action
}

/// Sends frames as fast as can be; those that the kernel hands over together
/// share a stamp.
#[xdp]
pub fn tscap_send_flat_out(ctx: XdpContext) -> u32 {
    let (Some(orders), Some(sending)) = (ORDERS.get(0), SENDING.get_ptr_mut(0)) else {
        return XDP_DROP;
    };
    let sending = unsafe { &mut *sending };
    if is_over(sending) {
        return XDP_DROP;
    }
    if sending.sent % BULK == 0 {
        read_stamps(orders, sending);
        let now_ns = unsafe { bpf_ktime_get_ns() };
        note_gap(orders, sending, now_ns);
    }
    send(&ctx, orders, sending)
}

/// Told to stop, or the interface is gone.
#[inline(always)]
fn is_over(sending: &Sending) -> bool {
    let stop = STOP.get(0);
    sending.failed != 0
        || stop.is_none_or(|stop| unsafe { (&raw const *stop).read_volatile() } != 0)
}

struct Spin {
    due_ns: u64,
    now_ns: u64,
}

/// One turn of `bpf_loop`: 1 ends it.
#[inline(never)]
extern "C" fn look_at_clock(_turn: u32, spin: *mut Spin) -> c_long {
    let now_ns = unsafe { bpf_ktime_get_ns() };
    unsafe { (*spin).now_ns = now_ns };
    (now_ns >= unsafe { (*spin).due_ns }) as c_long
}

#[inline(always)]
fn read_stamps(orders: &Orders, sending: &mut Sending) {
    if orders.reads_tsc != 0 {
        let by = TSC_BY.load();
        let count = if by == TSC_BY_PERF {
            tsc::read()
        } else if by == TSC_BY_KFUNC {
            kfunc::read()
        } else {
            0
        };
        sending.tsc = if let Some(count) = tsc::checked(count) {
            count.wrapping_add(orders.tsc_offset)
        } else {
            0
        };
    }
    sending.tai = unsafe { bpf_ktime_get_tai_ns() };
}

#[inline(always)]
fn note_gap(orders: &Orders, sending: &mut Sending, now_ns: u64) {
    if sending.first_ns == 0 {
        sending.first_ns = now_ns;
    } else if let Some(gaps) = GAPS.get_ptr_mut(0) {
        let gap = now_ns.wrapping_sub(sending.last_ns);
        let bucket = bucket_of(gap.wrapping_sub(orders.period_ns) as i64);
        if bucket < BUCKETS {
            unsafe { (*gaps)[bucket] += 1 };
        }
    }
    sending.last_ns = now_ns;
}

#[inline(always)]
fn send(ctx: &XdpContext, orders: &Orders, sending: &mut Sending) -> u32 {
    let is_written = match PAYLOAD_AT.load() {
        42 => write::<42>(ctx, orders, sending),
        46 => write::<46>(ctx, orders, sending),
        62 => write::<62>(ctx, orders, sending),
        66 => write::<66>(ctx, orders, sending),
        _ => false,
    };
    if !is_written {
        sending.failed += 1;
        return XDP_DROP;
    }
    let Ok(action) = TARGET.redirect(0, 0) else {
        sending.failed += 1;
        return XDP_DROP;
    };
    sending.sent += 1;
    sending.flow += 1;
    if sending.flow >= orders.flows {
        sending.flow = 0;
        sending.seq = sending.seq.wrapping_add(1);
    }
    action
}

/// Writes headers and payload; false if the frame is too short.
#[inline(always)]
fn write<const AT: usize>(ctx: &XdpContext, orders: &Orders, sending: &Sending) -> bool {
    let data = ctx.data();
    if data + AT + LENGTH > ctx.data_end() {
        return false;
    }
    // Aligned: the kernel puts frames at multiples of 8, and so is the headers'
    // place in their map. The last words are written over below.
    let from = (&raw const orders.headers).cast::<u64>();
    let to = data as *mut u64;
    let mut word = 0;
    while word < (AT + 7) / 8 {
        unsafe { to.add(word).write_volatile(from.add(word).read()) };
        word += 1;
    }
    let header = StreamHeader {
        run: orders.run,
        flow: sending.flow as u16,
        seq: sending.seq,
        tsc: sending.tsc & STAMP_MASK,
        tai: sending.tai & STAMP_MASK,
    };
    let port = FIRST_PORT.wrapping_add(sending.flow as u16);
    let words = header.words();
    let payload = (data + AT) as *mut u16;
    let mut word = 0;
    while word < LENGTH / 2 {
        unsafe { payload.add(word).write(words[word].to_be()) };
        word += 1;
    }
    let checksum = udp_checksum(orders.checksum, port, &words);
    unsafe {
        ((data + AT - 8) as *mut u16).write(port.to_be());
        ((data + AT - 2) as *mut u16).write(checksum.to_be());
    }
    true
}
