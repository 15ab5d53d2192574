//! Send times in test packets of other programs, at tcx egress: the packet has the time at which
//! it leaves the network stack, before the queueing discipline.

use core::mem::MaybeUninit;
use core::ptr::{addr_of, read_volatile};

use aya_ebpf::bindings::{__sk_buff, BPF_F_MARK_MANGLED_0, TC_ACT_UNSPEC};
use aya_ebpf::helpers::generated::{
    bpf_csum_diff, bpf_l4_csum_replace, bpf_skb_load_bytes, bpf_skb_store_bytes,
};
use aya_ebpf::macros::{classifier, map};
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::TcContext;
use tscap_common::send_times::{
    Bytes, CHECKSUM_AT, MOST_PORTS, Packet, STAMPED_AT, STAMPED_WORDS, SendCount, SendCounts,
    Stamped, has, stamped, udp,
};

use crate::clock::{Clock, Ktime, Tai, TscKfunc, TscPerf};
use crate::{on_common_scale, published};

/// User space sets them before loading.
#[unsafe(no_mangle)]
static PORTS: [u32; MOST_PORTS] = [0; MOST_PORTS];

#[map]
static SEND_COUNTS: PerCpuArray<SendCounts> = PerCpuArray::with_max_entries(1, 0);

macro_rules! at_tcx_egress {
    ($($program:ident: $clock:ty;)*) => {$(
        #[classifier]
        pub fn $program(ctx: TcContext) -> i32 {
            // Bottom halves are disabled: nothing else counts on this CPU meanwhile.
            if let Some(counts) = SEND_COUNTS.get_ptr_mut(0) {
                let counts = unsafe { &mut *counts };
                counts[SendCount::Seen as usize] += 1;
                counts[send::<$clock>(ctx.skb.skb) as usize] += 1;
            }
            TC_ACT_UNSPEC
        }
    )*};
}

at_tcx_egress! {
    tscap_send_ktime: Ktime;
    tscap_send_tai: Tai;
    tscap_send_perf: TscPerf;
    tscap_send_kfunc: TscKfunc;
}

/// A packet's bytes.
#[derive(Clone, Copy)]
struct Sent(*mut __sk_buff);

impl Bytes for Sent {
    #[inline(always)]
    fn words<const N: usize>(self, at: u32) -> Option<[u32; N]> {
        let mut words = MaybeUninit::<[u32; N]>::uninit();
        let (to, length) = (words.as_mut_ptr().cast::<u32>(), 4 * N as u32);
        // One by one: LLVM would call a function that does it byte by byte.
        for index in 0..N {
            unsafe { to.add(index).write_volatile(0) };
        }
        let error = unsafe { bpf_skb_load_bytes(self.0.cast(), at, to.cast(), length) };
        (error == 0).then(|| unsafe { words.assume_init() }.map(u32::from_be))
    }
}

/// Writes the time to a packet that it is for.
#[inline(always)]
fn send<C: Clock>(skb: *mut __sk_buff) -> SendCount {
    let bytes = Sent(skb);
    let Some(udp) = udp(bytes) else {
        return SendCount::Other;
    };
    if !is_wanted(udp.source, udp.destination) {
        return SendCount::Other;
    }
    let packet = unsafe {
        Packet {
            bytes,
            length: (*skb).len,
            is_forwarded: (*skb).ingress_ifindex != 0,
            is_aggregate: (*skb).gso_size != 0,
        }
    };
    let was = match stamped(packet, udp) {
        Ok(stamped) => stamped,
        Err(count) => return count,
    };
    let Some(published) = published() else {
        return SendCount::Overtaken;
    };
    let Some(stamp) = C::read().and_then(on_common_scale::<C>) else {
        return SendCount::NoStamp;
    };
    let Some(real) = published.line.real_at(stamp) else {
        return SendCount::Stale;
    };
    if put(skb, udp.at, was, was.at(real, &published)) {
        SendCount::Written
    } else {
        SendCount::Refused
    }
}

#[inline(always)]
fn is_wanted(source: u16, destination: u16) -> bool {
    let mut index = 0;
    while index < MOST_PORTS {
        let entry = unsafe { read_volatile(addr_of!(PORTS[index])) };
        if entry == 0 {
            return false;
        }
        if has(entry, source, destination) {
            return true;
        }
        index += 1;
    }
    false
}

/// Replaces the time behind the UDP header, and mends the checksum: one that is whole by the
/// difference; none where the device or the kernel computes it later (CHECKSUM_PARTIAL), or where
/// there is none. Nothing is changed if the kernel refuses.
#[inline(always)]
fn put(skb: *mut __sk_buff, udp: u32, was: Stamped, is: Stamped) -> bool {
    const BYTES: u32 = 4 * STAMPED_WORDS as u32;
    let (mut old, mut new) = (was.words().map(u32::to_be), is.words().map(u32::to_be));
    let store = |words: &[u32; STAMPED_WORDS]| unsafe {
        let from = words.as_ptr().cast();
        bpf_skb_store_bytes(skb, udp + STAMPED_AT, from, BYTES, 0) == 0
    };
    let change = unsafe { bpf_csum_diff(old.as_mut_ptr(), BYTES, new.as_mut_ptr(), BYTES, 0) };
    if change < 0 || !store(&new) {
        return false;
    }
    let flags = u64::from(BPF_F_MARK_MANGLED_0);
    let checksum = udp + CHECKSUM_AT;
    // The packet is writable this far by now: the kernel has no reason left to refuse.
    let is_mended = unsafe { bpf_l4_csum_replace(skb, checksum, 0, change as u64, flags) == 0 };
    is_mended || !store(&old)
}
