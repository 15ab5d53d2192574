//! The body shared by all stamp sources: one frame becomes one Enhanced Packet
//! Block in this CPU's ring, or is counted under the reason why it did not.

use core::ptr;

use aya_ebpf::check_bounds_signed;
use tscap_common::block::{
    self, CAPLEN_OFFSET, DATA_OFFSET, DROPCOUNT_BYTES, EPB_TYPE, FLAGS_BYTES, HARDWARE_BYTES,
    HARDWARE_DELAY_OFFSET, HARDWARE_STAMP_OFFSET, INTERFACE_OFFSET, LENGTH_OFFSET, MAX_CAPLEN,
    NOT_CONVERTED, OPT_DROPCOUNT, OPT_FLAGS, OPT_HARDWARE, OPT_QUEUE, OPT_RAW, ORIGLEN_OFFSET,
    Options, PEN, QUEUE_BYTES, RAW_BYTES, RAW_STAMP_OFFSET, STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET,
    TYPE_OFFSET,
};
use tscap_common::outcome::Outcome;
use tscap_common::ring;
use tscap_common::state::{CpuState, Losses};

pub use crate::account::Fault;
use crate::account::{Recorder, account, ring_of};
use crate::copy::copy;
use crate::frame::Frame;
use crate::maps::{KEEP_RAW, LOSSES, PACKET_FLAGS, PACKET_QUEUE, RING_MASK, SNAPLEN};
use crate::ring::{has_room, publish, put};
use crate::vlan::{self, Tag};

/// Records the frame, stamped with `stamp`. `stamp` is `None` where the clock could not be
/// read: the frame is counted.
#[inline(always)]
pub fn record<F: Frame>(frame: F, stamp: Option<u64>, fault: Fault) {
    account(frame, stamp, fault, Blocks(fault));
}

/// Of a frame its block.
#[derive(Clone, Copy)]
struct Blocks(Fault);

impl Recorder for Blocks {
    #[inline(always)]
    fn append<F: Frame>(
        self,
        frame: F,
        stamp: u64,
        cpu: *mut CpuState,
        slot: u32,
        tag: Option<Tag>,
    ) -> Result<(), Outcome> {
        append(frame, stamp, cpu, slot, tag, self.0)
    }
}

#[inline(always)]
fn append<F: Frame>(
    frame: F,
    stamp: u64,
    cpu: *mut CpuState,
    slot: u32,
    tag: Option<Tag>,
    fault: Fault,
) -> Result<(), Outcome> {
    let ring = ring_of(cpu)?;

    let tag_len = if tag.is_some() { vlan::LENGTH } else { 0 };
    let frame_len = frame.len();
    if frame_len < F::LEAST {
        return Err(Outcome::TooShort);
    }
    let reach = frame.reach();
    if reach < F::LEAST {
        return Err(Outcome::CopyFailed);
    }
    let origlen = frame_len + tag_len;
    let kept = origlen.min(reach.saturating_add(tag_len));
    let caplen = kept.min(u64::from(SNAPLEN.load()));
    // One signed comparison of both ends: the verifier of 6.1 learns nothing
    // from two separate ones that LLVM has folded.
    if !check_bounds_signed(caplen as i64, 1, MAX_CAPLEN as i64) {
        return Err(Outcome::TooLong);
    }

    let losses = if unsafe { (*cpu).pending } == 0 {
        ptr::null_mut()
    } else {
        pending_losses(slot)
    };
    let keep_raw = KEEP_RAW.load() != 0;
    let flags = PACKET_FLAGS.load() != 0;
    // Of an `Option` without a value LLVM would keep a register that nothing was written to,
    // which the verifier refuses.
    let (has_queue, queue) = match PACKET_QUEUE.load() {
        0 => (false, 0),
        _ => frame.queue().map_or((false, 0), |queue| (true, queue)),
    };
    let hardware = frame.hardware_stamp();
    let data_len = block::padded(caplen as usize);
    let options = Options {
        raw: keep_raw,
        hardware: hardware.is_some(),
        flags,
        queue: has_queue,
        drop_count: !losses.is_null(),
    };
    let options = options.bytes();
    let total = DATA_OFFSET + data_len + options + 4;

    let mask = RING_MASK.load();
    // A tag is put back into at least `vlan::LEAST` bytes, also where fewer are kept.
    let room = total as u64 + if tag.is_some() { vlan::LEAST } else { 0 };
    if !has_room(cpu, ring, mask + 1, room) {
        return Err(Outcome::RingFull);
    }

    unsafe {
        let block = ring.add(ring::DATA_OFFSET + ((*cpu).head & mask) as usize);
        // Zero the last word of the data first, so that its pad bytes are zero.
        put(block.add(data_len), DATA_OFFSET - 4, 0);
        let data = block.add(DATA_OFFSET);
        let wanted = match tag {
            _ if fault == Fault::CopiesTooMuch => MAX_CAPLEN as u64,
            Some(_) => caplen.max(vlan::LEAST) - vlan::LENGTH,
            None => caplen,
        };
        if !copy(frame, data.add(tag_len as usize), wanted) {
            return Err(Outcome::CopyFailed);
        }
        if let Some(tag) = tag {
            vlan::put_back(data, tag);
            if caplen < vlan::LEAST {
                clear_pad(data, caplen as usize);
            }
        }
        put(block, TYPE_OFFSET, EPB_TYPE);
        put(block, LENGTH_OFFSET, total as u32);
        put(block, INTERFACE_OFFSET, slot);
        put(block, STAMP_HIGH_OFFSET, (stamp >> 32) as u32);
        put(block, STAMP_LOW_OFFSET, stamp as u32);
        put(block, CAPLEN_OFFSET, caplen as u32);
        put(block, ORIGLEN_OFFSET, origlen as u32);

        let mut end = data.add(data_len);
        if keep_raw {
            put(end, 0, OPT_RAW);
            put(end, 4, PEN);
            put(end, RAW_STAMP_OFFSET, stamp as u32);
            put(end, RAW_STAMP_OFFSET + 4, (stamp >> 32) as u32);
            end = end.add(RAW_BYTES);
        }
        if let Some(stamp) = hardware {
            put(end, 0, OPT_HARDWARE);
            put(end, 4, PEN);
            put(end, HARDWARE_STAMP_OFFSET, stamp as u32);
            put(end, HARDWARE_STAMP_OFFSET + 4, (stamp >> 32) as u32);
            put(end, HARDWARE_DELAY_OFFSET, NOT_CONVERTED as u32);
            put(end, HARDWARE_DELAY_OFFSET + 4, (NOT_CONVERTED >> 32) as u32);
            end = end.add(HARDWARE_BYTES);
        }
        if flags {
            put(end, 0, OPT_FLAGS);
            put(end, 4, frame.flags());
            end = end.add(FLAGS_BYTES);
        }
        if has_queue {
            put(end, 0, OPT_QUEUE);
            put(end, 4, queue);
            end = end.add(QUEUE_BYTES);
        }
        if !losses.is_null() {
            let lost = (*losses).pending;
            put(end, 0, OPT_DROPCOUNT);
            put(end, 4, lost as u32);
            put(end, 8, (lost >> 32) as u32);
            end = end.add(DROPCOUNT_BYTES);
            (*losses).pending = 0;
            (*cpu).pending -= lost;
        }
        if options != 0 {
            put(end, 0, 0);
            end = end.add(4);
        }
        put(end, 0, total as u32);
    }
    publish(cpu, ring, total as u64);
    Ok(())
}

/// Zeroes the pad bytes behind `len` bytes of data, at least one byte.
#[inline(always)]
unsafe fn clear_pad(data: *mut u8, len: usize) {
    let last = unsafe { data.add(block::padded(len) - 4).cast::<u32>() };
    let kept = match len % 4 {
        0 => u32::MAX,
        bytes => (1 << (8 * bytes)) - 1,
    };
    unsafe { last.write(last.read() & u32::from_le(kept)) };
}

/// The losses of this slot on this CPU, if any are yet to be reported; null if not. Beside an
/// `Option` of a pointer, its pointer without a meaning would be one more state in which the
/// verifier goes through the copying of the frame.
#[inline(always)]
fn pending_losses(slot: u32) -> *mut Losses {
    match LOSSES.get_ptr_mut(slot) {
        Some(losses) if unsafe { (*losses).pending } != 0 => losses,
        _ => ptr::null_mut(),
    }
}
