//! The producer's side of the ring. There is one producer a ring: programs at XDP and tc
//! run with bottom halves disabled, for received frames in a softirq and for sent ones in
//! `__dev_queue_xmit` (net/core/dev.c), so nothing on this CPU can run another one in
//! between (user space refuses PREEMPT_RT kernels, where that is not given).

use core::ptr;

use tscap_common::ring::{HEAD_OFFSET, TAIL_OFFSET};
use tscap_common::state::CpuState;
use tscap_ebpf::store_release;

/// Whether `len` more bytes fit. The consumer's cache line is touched only when
/// the tail seen last says that they do not.
#[inline(always)]
pub fn has_room(cpu: *mut CpuState, ring: *mut u8, ring_bytes: u64, len: u64) -> bool {
    unsafe {
        if (*cpu).head - (*cpu).cached_tail + len <= ring_bytes {
            return true;
        }
        // The consumer publishes the tail with release order after it has read
        // the bytes. What the producer then overwrites is behind a branch on this load,
        // and no CPU shows a store before such a branch is certain.
        (*cpu).cached_tail = ptr::read_volatile(ring.add(TAIL_OFFSET).cast::<u64>());
        (*cpu).head - (*cpu).cached_tail + len <= ring_bytes
    }
}

/// Makes a record of `len` bytes visible to the consumer.
#[inline(always)]
pub fn publish(cpu: *mut CpuState, ring: *mut u8, len: u64) {
    unsafe {
        let head = (*cpu).head + len;
        (*cpu).head = head;
        store_release(ring.add(HEAD_OFFSET).cast(), head);
    }
}

/// Stores a word in the host's byte order; ring positions are multiples of four.
#[inline(always)]
pub unsafe fn put(base: *mut u8, offset: usize, word: u32) {
    unsafe { base.add(offset).cast::<u32>().write(word) };
}
