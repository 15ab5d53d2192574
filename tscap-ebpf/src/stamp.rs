//! The programs of `tscap stamp`: at XDP one for each clock, which puts its stamp in front of
//! the frame; one at tcx ingress, which puts it in the place of the kernel's own; and at tcx
//! egress one for each clock, which writes send times ([`send`]).
#![no_std]
#![no_main]

mod clock;
mod kfunc;
mod object;
mod send;
mod tsc;

use core::ptr::{addr_of, read_volatile};

use aya_ebpf::Global;
use aya_ebpf::bindings::xdp_action::XDP_PASS;
use aya_ebpf::bindings::{__sk_buff, TC_ACT_UNSPEC};
use aya_ebpf::helpers::generated::{
    bpf_get_smp_processor_id, bpf_xdp_adjust_meta, bpf_xdp_load_bytes,
};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{Array, PerCpuArray};
use aya_ebpf::programs::{TcContext, XdpContext};
use tscap_common::hook::ClockDomain;
use tscap_common::stamping::{
    Count, Counts, Latch, Line, MOST_EARLIER_NS, MOST_READS, Mark, Published,
};
use tscap_ebpf::load_in_order;

use crate::clock::{Clock, Ktime, Tai, TscKfunc, TscPerf};

const BPF_F_MMAPABLE: u32 = 1 << 10;

#[map(name = "LATCH")]
static LATCHES: Array<Latch> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// User space sets the number of entries before loading.
#[map]
static OFFSETS: Array<u64> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
static COUNTS: PerCpuArray<Counts> = PerCpuArray::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static COOKIE: Global<u64> = Global::new(0);

/// The counters of this CPU. Both programs run with bottom halves disabled: neither interrupts
/// the other.
#[inline(always)]
fn counts() -> Option<&'static mut Counts> {
    COUNTS.get_ptr_mut(0).map(|counts| unsafe { &mut *counts })
}

macro_rules! at_xdp {
    ($($program:ident: $clock:ty;)*) => {$(
        #[xdp(frags)]
        pub fn $program(ctx: XdpContext) -> u32 {
            let stamp = <$clock>::read();
            if let Some(counts) = counts() {
                counts[Count::Received as usize] += 1;
                counts[mark::<$clock>(&ctx, stamp) as usize] += 1;
            }
            XDP_PASS
        }
    )*};
}

at_xdp! {
    tscap_mark_ktime: Ktime;
    tscap_mark_tai: Tai;
    tscap_mark_perf: TscPerf;
    tscap_mark_kfunc: TscKfunc;
}

/// Puts the stamp in front of the frame.
#[inline(always)]
fn mark<C: Clock>(ctx: &XdpContext, stamp: Option<u64>) -> Count {
    let Some(stamp) = stamp.and_then(on_common_scale::<C>) else {
        return Count::NoStamp;
    };
    if is_tcp(ctx) {
        return Count::Tcp;
    }
    let size = size_of::<Mark>();
    if unsafe { bpf_xdp_adjust_meta(ctx.ctx, -(size as i32)) } != 0 {
        return Count::NoRoom;
    }
    let place = ctx.metadata();
    if place + size > ctx.data() {
        return Count::NoRoom;
    }
    let cookie = COOKIE.load();
    unsafe { *(place as *mut Mark) = Mark { cookie, stamp } };
    Count::Marked
}

/// A stamp on the scale that all CPUs share: the packet may be looked at on another one.
#[inline(always)]
fn on_common_scale<C: Clock>(stamp: u64) -> Option<u64> {
    if !matches!(C::DOMAIN, ClockDomain::CpuTsc) {
        return Some(stamp);
    }
    let offset = OFFSETS.get_ptr(unsafe { bpf_get_smp_processor_id() })?;
    Some(stamp.wrapping_add(unsafe { read_volatile(offset) }))
}

/// Whether it is a TCP segment without encapsulation. The kernel merges frames with the same
/// metadata only (`gro_list_prepare`, net/core/gro.c).
#[inline(always)]
fn is_tcp(ctx: &XdpContext) -> bool {
    /// EtherTypes, and a protocol of IP.
    const VLAN: [u16; 2] = [0x8100, 0x88a8];
    const IPV4: u16 = 0x0800;
    const IPV6: u16 = 0x86dd;
    const TCP: u16 = 6;
    let mut at = 12;
    let mut kind = word(ctx, at);
    let mut tags = 0;
    while tags < 2 && VLAN.contains(&kind) {
        at += 4;
        kind = word(ctx, at);
        tags += 1;
    }
    match kind {
        IPV4 => word(ctx, at + 2 + 8) & 0xff == TCP,
        IPV6 => word(ctx, at + 2 + 6) >> 8 == TCP,
        _ => false,
    }
}

/// Two bytes of the frame, also of one whose first buffer is shorter; 0 behind its end.
#[inline(always)]
fn word(ctx: &XdpContext, at: usize) -> u16 {
    let mut word = 0u16;
    if ctx.data() + at + 2 <= ctx.data_end() {
        word = unsafe { *((ctx.data() + at) as *const u16) };
    } else if unsafe { bpf_xdp_load_bytes(ctx.ctx, at as u32, (&raw mut word).cast(), 2) } != 0 {
        return 0;
    }
    u16::from_be(word)
}

/// Puts a packet's stamp in the place of the kernel's. At tcx the next program runs only after
/// `TC_ACT_UNSPEC` (`TCX_NEXT`).
#[classifier]
pub fn tscap_place(ctx: TcContext) -> i32 {
    if let Some(counts) = counts() {
        counts[Count::Seen as usize] += 1;
        let outcome = place(ctx.skb.skb, counts);
        counts[outcome as usize] += 1;
    }
    TC_ACT_UNSPEC
}

#[inline(always)]
fn place(skb: *mut __sk_buff, counts: &mut Counts) -> Count {
    // 0 is CLOCK_REALTIME. A program that reads the type writes the time as it is, and leaves
    // the type alone (`bpf_convert_tstamp_write`, net/core/filter.c).
    if unsafe { read_volatile(addr_of!((*skb).tstamp_type)) } != 0 {
        return Count::Paced;
    }
    let kernels = unsafe { (*skb).tstamp };
    if kernels == 0 {
        return Count::Unasked;
    }
    let Some(stamp) = marked(skb) else {
        return Count::Unmarked;
    };
    let Some(published) = published() else {
        return Count::Overtaken;
    };
    let Some(real) = published.line.real_at(stamp) else {
        return Count::Stale;
    };
    let slack = published.slack_us as u64 * 1_000;
    let kernels = kernels.wrapping_add(published.ahead_ns as u64);
    // A later one wraps.
    let earlier = kernels.wrapping_add(slack).wrapping_sub(real);
    if earlier > MOST_EARLIER_NS.wrapping_add(slack) {
        return Count::Apart;
    }
    let earlier = if earlier > slack { earlier - slack } else { 0 };
    unsafe { (*skb).tstamp = real };
    counts[Count::EarlierNs as usize] += earlier;
    if earlier > counts[Count::MostEarlierNs as usize] {
        counts[Count::MostEarlierNs as usize] = earlier;
    }
    Count::Stamped
}

/// The stamp that the program at XDP left in front of the packet.
#[inline(always)]
fn marked(skb: *mut __sk_buff) -> Option<u64> {
    let (place, data) = unsafe { ((*skb).data_meta as usize, (*skb).data as usize) };
    if place + size_of::<Mark>() > data {
        return None;
    }
    let mark = unsafe { *(place as *const Mark) };
    (mark.cookie == COOKIE.load()).then_some(mark.stamp)
}

/// The line in force; `None` if it was replaced each time while it was read. User space writes
/// the other line before it moves the sequence on, so that only a reader who sees it move may
/// have read of two.
#[inline(always)]
fn published() -> Option<Published> {
    let latch = LATCHES.get_ptr(0)?;
    let mut reads = 0;
    while reads < MOST_READS {
        let sequence = unsafe { read_volatile(addr_of!((*latch).sequence)) };
        let place = unsafe { addr_of!((*latch).lines[(sequence & 1) as usize]) };
        let published = unsafe {
            Published {
                line: Line {
                    from: read_volatile(addr_of!((*place).line.from)),
                    real: read_volatile(addr_of!((*place).line.real)),
                    rate: read_volatile(addr_of!((*place).line.rate)),
                    span: read_volatile(addr_of!((*place).line.span)),
                },
                ahead_ns: read_volatile(addr_of!((*place).ahead_ns)),
                tai_offset_s: read_volatile(addr_of!((*place).tai_offset_s)),
                error_estimate: read_volatile(addr_of!((*place).error_estimate)),
                slack_us: read_volatile(addr_of!((*place).slack_us)),
            }
        };
        if unsafe { load_in_order(addr_of!((*latch).sequence)) } == sequence {
            return Some(published);
        }
        reads += 1;
    }
    None
}
