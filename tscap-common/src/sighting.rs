//! The record of a packet that was seen, for `tscap delay`: what tells it from others in the
//! place of its bytes. It lies in the ring as a block does ([`crate::ring`]), in the host's byte
//! order; slot and stamp have the places that they have in a block ([`crate::block`]).

use crate::block::{INTERFACE_OFFSET, LENGTH_OFFSET, STAMP_LOW_OFFSET, TYPE_OFFSET};

/// u32: a [`crate::key::KeyOf`].
pub const KEY_OF: &str = "KEY_OF";
/// u32: most bytes of a frame that its record keeps, at most [`MOST_KEPT`].
pub const KEPT: &str = "KEPT";
/// u32: number of possible CPUs. Where an application takes packets, a program may be
/// interrupted by the others: its producer on a CPU has the number of the CPU plus this.
pub const PROCESS_PRODUCERS: &str = "PROCESS_PRODUCERS";

/// Stands for the block type of a packet with a key.
pub const KEYED: u32 = 0x7473_0001;
/// Stands for the block type of a frame without what it could be told by.
pub const UNKEYED: u32 = 0x7473_0002;
/// Stands for the block type of an aggregate of several packets with a key of its own: the
/// upper half of the slot's word is their number.
pub const AGGREGATE: u32 = 0x7473_0003;
/// Stands for the block type of a packet with a key and a hardware stamp (u64), which lies
/// behind the bytes that are kept.
pub const STAMPED: u32 = 0x7473_0004;
/// Length of a hardware stamp.
pub const HARDWARE_STAMP_BYTES: usize = 8;
/// Set in what stands for the block type where the record ends with how long its program took
/// until it was written, ns (u32): the program is of a layer of the stack.
pub const TIMED: u32 = 0x100;
/// Length of that.
pub const SPENT_BYTES: usize = 4;
/// Most packets that an aggregate is told to have.
pub const MOST_SEGMENTS: u32 = 0xffff;

/// Byte offset of the key's low word (u32).
pub const KEY_LOW_OFFSET: usize = 20;
/// Byte offset of the key's high word (u32).
pub const KEY_HIGH_OFFSET: usize = 24;
/// Byte offset of the frame's length (u32).
pub const ORIGLEN_OFFSET: usize = 28;
/// Length of a record that keeps no bytes, and the offset of those that are kept.
pub const BYTES: usize = 32;
/// Most bytes of a frame that a record can keep; a multiple of four.
pub const MOST_KEPT: usize = 1 << 10;

const _: () = assert!(TYPE_OFFSET == 0 && LENGTH_OFFSET == 4 && INTERFACE_OFFSET == 8);
const _: () = assert!(STAMP_LOW_OFFSET + 4 == KEY_LOW_OFFSET);
const _: () =
    assert!(BYTES + MOST_KEPT + HARDWARE_STAMP_BYTES + SPENT_BYTES <= crate::block::MAX_RECORD);
const _: () = assert!((KEYED | UNKEYED | AGGREGATE | STAMPED) & TIMED == 0);
