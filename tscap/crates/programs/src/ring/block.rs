//! One Enhanced Packet Block in memory: its fields, and the two that the
//! converter rewrites.

use tscap_common::block::{
    CAPLEN_OFFSET, DATA_OFFSET, EPB_TYPE, FLAGS_OUTBOUND, HARDWARE_BYTES, HARDWARE_DELAY_OFFSET,
    HARDWARE_STAMP_OFFSET, INTERFACE_OFFSET, LENGTH_OFFSET, MAX_RECORD, NOT_CONVERTED, OPT_FLAGS,
    OPT_HARDWARE, OPT_RAW, ORIGLEN_OFFSET, RAW_BYTES, RAW_STAMP_OFFSET, STAMP_HIGH_OFFSET,
    STAMP_LOW_OFFSET, TYPE_OFFSET, block_len, padded,
};

use tscap_common::hook::{Direction, Slot};

use tscap_clock::{PhcNs, RawStamp, RealNs};

/// A ring held something that is no block: a bug, or memory gone bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no packet block at position {position} of a ring: type {block_type:#x}, length {length}, \
     slot {slot}"
)]
pub struct CorruptBlock {
    /// Position in the ring, bytes since the start of the capture.
    pub position: u64,
    /// What stands for the block type.
    pub block_type: u32,
    /// What stands for the length.
    pub length: u32,
    /// What stands for the slot.
    pub slot: u32,
}

/// One whole block.
#[derive(Debug)]
pub struct Block<'a> {
    bytes: &'a mut [u8],
    stamp: RawStamp,
}

impl<'a> Block<'a> {
    /// The block at the start of `bytes`, which lies at `position` and has this
    /// [`stamp`].
    #[inline]
    pub(super) fn at_start(
        bytes: &'a mut [u8],
        position: u64,
        stamp: RawStamp,
    ) -> Result<Self, CorruptBlock> {
        let Some(head) = head(bytes) else {
            return Err(corrupt(bytes, position));
        };
        let block_type = word(head, TYPE_OFFSET);
        let len = word(head, LENGTH_OFFSET) as usize;
        let is_block = block_type == EPB_TYPE
            && len.is_multiple_of(4)
            && (block_len(0, 0)..=MAX_RECORD).contains(&len)
            && len <= bytes.len();
        if !is_block {
            return Err(corrupt(bytes, position));
        }
        Ok(Self {
            bytes: &mut bytes[..len],
            stamp,
        })
    }

    /// Length of the whole block, bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Always false: a block has at least its frame of fields.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Which program has recorded it.
    #[inline]
    pub fn slot(&self) -> Slot {
        Slot(word(self.bytes, INTERFACE_OFFSET))
    }

    /// The stamp as it was taken, with the ring's offset: it compares with those
    /// of other rings.
    #[inline]
    pub fn raw_stamp(&self) -> RawStamp {
        self.stamp
    }

    /// Length of the frame on the wire, bytes.
    #[inline]
    pub fn origlen(&self) -> u32 {
        word(self.bytes, ORIGLEN_OFFSET)
    }

    /// The captured bytes of the frame.
    pub fn data(&self) -> &[u8] {
        &self.bytes[DATA_OFFSET..][..word(self.bytes, CAPLEN_OFFSET) as usize]
    }

    /// Replaces the raw stamp that the block carries as its first option. The
    /// program must have been loaded to keep raw stamps.
    pub fn set_raw_option(&mut self, stamp: RawStamp) {
        let caplen = word(self.bytes, CAPLEN_OFFSET) as usize;
        let at = DATA_OFFSET + padded(caplen) + RAW_STAMP_OFFSET;
        if let Some(option) = self.bytes.get_mut(at..at + 8) {
            option.copy_from_slice(&stamp.0.to_ne_bytes());
        }
    }

    /// The stamp of the interface's own clock, if the frame has one.
    #[inline]
    pub fn hardware_stamp(&self) -> Option<PhcNs> {
        let at = hardware_option(self.bytes)? + HARDWARE_STAMP_OFFSET;
        let stamp = self.bytes.get(at..)?.first_chunk()?;
        Some(PhcNs(u64::from_ne_bytes(*stamp)))
    }

    /// Says how much later than the [hardware stamp](Self::hardware_stamp), which the block
    /// must have, the frame's own was taken, ns; or
    /// [`NOT_CONVERTED`](tscap_common::block::NOT_CONVERTED).
    #[inline]
    pub fn set_hardware_delay(&mut self, delay_ns: i64) {
        let Some(option) = hardware_option(self.bytes) else {
            return;
        };
        let at = option + HARDWARE_DELAY_OFFSET;
        if let Some(value) = self.bytes.get_mut(at..at + 8) {
            value.copy_from_slice(&delay_ns.to_ne_bytes());
        }
    }

    /// Makes the block final: the interface's index in the file, and the stamp
    /// in nanoseconds since the epoch, high word first.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the low word of the stamp")]
    pub fn finish(&mut self, interface: u32, stamp: RealNs) {
        put(self.bytes, INTERFACE_OFFSET, interface);
        put(self.bytes, STAMP_HIGH_OFFSET, (stamp.0 >> 32) as u32);
        put(self.bytes, STAMP_LOW_OFFSET, stamp.0 as u32);
    }
}

pub(super) fn corrupt(bytes: &[u8], position: u64) -> CorruptBlock {
    CorruptBlock {
        position,
        block_type: word(bytes, TYPE_OFFSET),
        length: word(bytes, LENGTH_OFFSET),
        slot: word(bytes, INTERFACE_OFFSET),
    }
}

/// A frame in a final block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalFrame {
    /// The program that has recorded it.
    pub slot: Slot,
    /// Whether it has a hardware stamp.
    pub has_hardware_stamp: bool,
    /// Whether that was converted.
    pub is_converted: bool,
}

/// The blocks in `bytes`, which must be whole and final ones: the frame of each that has
/// one, and where it ends. Bytes that are no block end it.
pub fn blocks(bytes: &[u8]) -> impl Iterator<Item = (Option<FinalFrame>, usize)> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let block = &bytes[end..];
        let length = word(block, LENGTH_OFFSET) as usize;
        if length < SHORTEST || length > block.len() {
            return None;
        }
        end += length;
        Some((frame_of(block), end))
    })
}

/// Shortest block, bytes: type and two lengths.
const SHORTEST: usize = 12;

/// The frame of a final block, if it has one.
fn frame_of(block: &[u8]) -> Option<FinalFrame> {
    let has_frame = word(block, TYPE_OFFSET) == EPB_TYPE;
    let hardware = hardware_option(block);
    let delay = hardware.and_then(|at| block.get(at + HARDWARE_DELAY_OFFSET..)?.first_chunk());
    has_frame.then(|| FinalFrame {
        slot: Slot::of(word(block, INTERFACE_OFFSET), direction(block)),
        has_hardware_stamp: hardware.is_some(),
        is_converted: delay.is_some_and(|delay| i64::from_ne_bytes(*delay) != NOT_CONVERTED),
    })
}

/// The last of whole and final blocks: its length, and its frame if it has one.
pub fn last_block(bytes: &[u8]) -> Option<(usize, Option<FinalFrame>)> {
    let length = word(bytes, bytes.len().checked_sub(4)?) as usize;
    let block = &bytes[bytes.len().checked_sub(length)?..];
    (length >= SHORTEST).then(|| (length, frame_of(block)))
}

/// Which way the frame of a block goes. Blocks without `epb_flags` are of captures of
/// received frames.
fn direction(block: &[u8]) -> Direction {
    let options = match hardware_option(block) {
        Some(hardware) => hardware + HARDWARE_BYTES,
        None => behind_raw(block),
    };
    let flags = word(block, options + 4);
    if word(block, options) == OPT_FLAGS && flags & FLAGS_OUTBOUND != 0 {
        Direction::Out
    } else {
        Direction::In
    }
}

/// Where the options of a block begin, bytes, but for its raw stamp.
#[inline]
fn behind_raw(block: &[u8]) -> usize {
    let options = DATA_OFFSET + padded(word(block, CAPLEN_OFFSET) as usize);
    match word(block, options) {
        OPT_RAW => options + RAW_BYTES,
        _ => options,
    }
}

/// Where the hardware stamp of a block is, bytes, if it has one.
#[inline]
fn hardware_option(block: &[u8]) -> Option<usize> {
    let at = behind_raw(block);
    (word(block, at) == OPT_HARDWARE).then_some(at)
}

/// The stamp of the block at the start of `bytes`, increased by `offset`; of
/// bytes too short for a block, any. Never [`RawStamp::NEVER`], whatever stands
/// there.
#[inline]
pub(super) fn stamp(bytes: &[u8], offset: i64) -> RawStamp {
    let raw = head(bytes).map_or(0, |head| {
        let high = u64::from(word(head, STAMP_HIGH_OFFSET));
        high << 32 | u64::from(word(head, STAMP_LOW_OFFSET))
    });
    RawStamp(raw.wrapping_add_signed(offset).min(u64::MAX - 1))
}

/// The fields at the start of a block: one look at the length does for all of them.
#[inline]
fn head(bytes: &[u8]) -> Option<&[u8; DATA_OFFSET]> {
    bytes.first_chunk()
}

#[inline]
pub(super) fn word(bytes: &[u8], offset: usize) -> u32 {
    bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |word| u32::from_ne_bytes(*word))
}

#[inline]
fn put(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests;
