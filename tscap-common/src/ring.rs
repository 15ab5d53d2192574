//! The per-CPU ring: one element of the `RINGS` array map.
//!
//! ```text
//! 0          head, written by the program        (a cache line of its own)
//! 256        tail, written by user space         (a cache line of its own)
//! 4096       data, `ring_bytes` long, a power of two
//! 4096+ring  slack, where a record that starts before the end may run over
//! ```
//!
//! `head` and `tail` only grow; a position `p` lies at `data + (p & mask)`. A
//! record never wraps: one that starts near the end runs on into the slack, and
//! the next one starts where its position says, past the bytes that the
//! overrun stands for. So `head - tail` is exactly the occupied length.

use crate::block::MAX_RECORD;

/// Offset of `head` in a ring, bytes.
pub const HEAD_OFFSET: usize = 0;
/// Offset of `tail` in a ring, bytes.
pub const TAIL_OFFSET: usize = 256;
/// Offset of the data in a ring, bytes: one page.
pub const DATA_OFFSET: usize = 4096;
/// Length of the slack behind the data, bytes: at least one longest record, in
/// whole pages.
pub const SLACK_BYTES: usize = 65536;

/// Smallest ring, bytes.
pub const MIN_RING_BYTES: usize = 128 * 1024;
/// Largest ring, bytes: the largest power of two for which the verifier takes
/// a map value (it refuses offsets of 2^29 and more).
pub const MAX_RING_BYTES: usize = 256 * 1024 * 1024;

/// Size of one element of the `RINGS` map for rings of `ring_bytes`.
pub const fn value_size(ring_bytes: usize) -> usize {
    DATA_OFFSET + ring_bytes + SLACK_BYTES
}

/// Whether `ring_bytes` is a length that a ring can have.
pub const fn is_valid_ring_bytes(ring_bytes: usize) -> bool {
    ring_bytes.is_power_of_two() && ring_bytes >= MIN_RING_BYTES && ring_bytes <= MAX_RING_BYTES
}

const _: () = assert!(SLACK_BYTES > MAX_RECORD && SLACK_BYTES.is_multiple_of(4096));
const _: () = assert!(MIN_RING_BYTES > MAX_RECORD);
