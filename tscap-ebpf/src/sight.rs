//! The body of `tscap delay`: of one frame its key becomes a record in this CPU's ring, or the
//! frame is counted under the reason why it did not.

use aya_ebpf::{Global, check_bounds_signed};
use tscap_common::block::{
    INTERFACE_OFFSET, LENGTH_OFFSET, STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET, TYPE_OFFSET, padded,
};
use tscap_common::key::{KeyOf, MOST_BYTES, Octets, READ_AHEAD, digest, key};
use tscap_common::outcome::Outcome;
use tscap_common::ring;
use tscap_common::sighting::{
    AGGREGATE, BYTES, HARDWARE_STAMP_BYTES, KEY_HIGH_OFFSET, KEY_LOW_OFFSET, KEYED, MOST_KEPT,
    MOST_SEGMENTS, ORIGLEN_OFFSET, SPENT_BYTES, STAMPED, TIMED, UNKEYED,
};
use tscap_common::state::CpuState;

use crate::account::{Fault, Recorder, account, ring_of};
use crate::clock::{Clock, Ktime};
use crate::copy::copy;
use crate::frame::Frame;
use crate::maps::RING_MASK;
use crate::ring::{has_room, publish, put};
use crate::vlan::{self, Tag};

#[unsafe(no_mangle)]
static KEY_OF: Global<u32> = Global::new(KeyOf::Bridge as u32);

#[unsafe(no_mangle)]
static KEPT: Global<u32> = Global::new(0);

/// Most that the bytes of a frame are read at.
const MOST_REACH: u32 = (MOST_BYTES + READ_AHEAD).next_power_of_two() - 1;

const _: () = assert!(BYTES + MOST_REACH as usize + 8 < ring::SLACK_BYTES);
// Where all bytes are kept there is room behind them for a hardware stamp, and for how long the
// program took.
const _: () = assert!((HARDWARE_STAMP_BYTES + SPENT_BYTES) as u64 <= vlan::LEAST);

/// [`MOST_REACH`], as a number that only the verifier knows: LLVM would leave out a cut to it
/// where it can prove that there is nothing to cut, which the verifier can't.
#[unsafe(no_mangle)]
static REACH: Global<u32> = Global::new(MOST_REACH);

/// A frame's bytes, behind the place of its record in the ring.
#[derive(Clone, Copy)]
struct InRing {
    bytes: *const u8,
    reach: u64,
}

impl InRing {
    /// Behind the place of a record.
    #[inline(always)]
    fn of(bytes: *const u8) -> Self {
        Self {
            bytes,
            reach: u64::from(REACH.load()),
        }
    }

    #[inline(always)]
    fn place(self, at: u32) -> *const u8 {
        unsafe { self.bytes.add((u64::from(at) & self.reach) as usize) }
    }
}

impl Octets for InRing {
    #[inline(always)]
    fn byte(self, at: u32) -> u64 {
        unsafe { u64::from(self.place(at).read()) }
    }

    #[inline(always)]
    fn word(self, at: u32) -> u64 {
        u64::from_le(unsafe { self.place(at).cast::<u64>().read_unaligned() })
    }

    /// By way of the record's own place, which is written last.
    #[inline(always)]
    fn opaque(self, number: u32) -> u32 {
        unsafe {
            let place = self.bytes.sub(BYTES).cast_mut().cast::<u32>();
            place.write_volatile(number);
            place.read_volatile()
        }
    }

    #[inline(always)]
    fn digest(self, seed: u64, from: u32, to: u32) -> u64 {
        digest_in_ring(self.bytes, seed, from, to)
    }
}

/// A function of its own: every program has several places that need it.
#[inline(never)]
extern "C" fn digest_in_ring(bytes: *const u8, seed: u64, from: u32, to: u32) -> u64 {
    digest(InRing::of(bytes), seed, from, to)
}

/// Records that the frame was seen, stamped with `stamp`; with `AT_LAYERS`, of how many packets
/// it was made, its hardware stamp, and how long all of this took since `stamp`, which is of
/// ktime then.
#[inline(always)]
pub fn sight<const AT_LAYERS: bool, F: Frame>(frame: F, stamp: Option<u64>) {
    account(frame, stamp, Fault::None, Keys::<AT_LAYERS>);
}

/// Of a frame its key.
#[derive(Clone, Copy)]
struct Keys<const AT_LAYERS: bool>;

impl<const AT_LAYERS: bool> Recorder for Keys<AT_LAYERS> {
    #[inline(always)]
    fn append<F: Frame>(
        self,
        frame: F,
        stamp: u64,
        cpu: *mut CpuState,
        slot: u32,
        tag: Option<Tag>,
    ) -> Result<(), Outcome> {
        append::<AT_LAYERS, F>(frame, stamp, cpu, slot, tag)
    }
}

#[inline(always)]
fn append<const AT_LAYERS: bool, F: Frame>(
    frame: F,
    stamp: u64,
    cpu: *mut CpuState,
    slot: u32,
    tag: Option<Tag>,
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
    let there = origlen.min(reach.saturating_add(tag_len));
    let length = there.min(u64::from(MOST_BYTES));
    // One signed comparison of both ends, as for a block.
    if !check_bounds_signed(length as i64, 1, i64::from(MOST_BYTES)) {
        return Err(Outcome::TooLong);
    }
    let (segments, hardware) = if AT_LAYERS {
        (frame.segments(), frame.hardware_stamp())
    } else {
        (1, None)
    };
    let mask = RING_MASK.load();
    // The frame lies there while its key is computed.
    let room = BYTES as u64 + padded(length as usize) as u64 + vlan::LEAST;
    if !has_room(cpu, ring, mask + 1, room) {
        return Err(Outcome::RingFull);
    }
    unsafe {
        let record = ring.add(ring::DATA_OFFSET + ((*cpu).head & mask) as usize);
        let data = record.add(BYTES);
        let bytes = match tag {
            Some(_) => length.max(vlan::LEAST) - vlan::LENGTH,
            None => length,
        };
        if !copy(frame, data.add(tag_len as usize), bytes) {
            return Err(Outcome::CopyFailed);
        }
        if let Some(tag) = tag {
            vlan::put_back(data, tag);
        }
        let frame = InRing::of(data);
        // Opaque: of the least of a length and a constant the verifier of 6.1 goes on with
        // lengths that there are none of.
        let length = frame.opaque(length as u32);
        let key = key_of(frame, length, origlen as u32);
        let kept = length.min(KEPT.load().min(MOST_KEPT as u32));
        let mut total = BYTES as u64 + padded(kept as usize) as u64;
        let (kind, place) = match (key, hardware) {
            (None, _) => (UNKEYED, slot),
            (Some(_), Some(stamp)) => {
                let behind = record.add(total as usize);
                put(behind, 0, stamp as u32);
                put(behind, 4, (stamp >> 32) as u32);
                total += HARDWARE_STAMP_BYTES as u64;
                (STAMPED, slot)
            }
            (Some(_), None) if AT_LAYERS && segments > 1 => {
                (AGGREGATE, slot | segments.min(MOST_SEGMENTS) << 16)
            }
            (Some(_), None) => (KEYED, slot),
        };
        let key = key.unwrap_or(0);
        let end = record.add(total as usize);
        let (kind, total) = if AT_LAYERS {
            (kind | TIMED, total + SPENT_BYTES as u64)
        } else {
            (kind, total)
        };
        put(record, TYPE_OFFSET, kind);
        put(record, LENGTH_OFFSET, total as u32);
        put(record, INTERFACE_OFFSET, place);
        put(record, STAMP_HIGH_OFFSET, (stamp >> 32) as u32);
        put(record, STAMP_LOW_OFFSET, stamp as u32);
        put(record, KEY_LOW_OFFSET, key as u32);
        put(record, KEY_HIGH_OFFSET, (key >> 32) as u32);
        put(record, ORIGLEN_OFFSET, origlen as u32);
        // Nothing but the publication is behind it.
        if AT_LAYERS && let Some(now) = Ktime::read() {
            put(
                end,
                0,
                now.wrapping_sub(stamp).min(u64::from(u32::MAX)) as u32,
            );
        }
        publish(cpu, ring, total);
    }
    Ok(())
}

/// What the key is of is a constant: the verifier removes what computes others.
#[inline(always)]
fn key_of(frame: InRing, there: u32, len: u32) -> Option<u64> {
    const GEN: u32 = KeyOf::Gen as u32;
    const ROUTE: u32 = KeyOf::Route as u32;
    const NAT: u32 = KeyOf::Nat as u32;
    const REPLY: u32 = KeyOf::Reply as u32;
    match KEY_OF.load() {
        GEN => key(KeyOf::Gen, frame, there, len),
        ROUTE => key(KeyOf::Route, frame, there, len),
        NAT => key(KeyOf::Nat, frame, there, len),
        REPLY => key(KeyOf::Reply, frame, there, len),
        _ => key(KeyOf::Bridge, frame, there, len),
    }
}
