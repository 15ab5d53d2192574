//! What a program keeps between frames, and what it counts.

use crate::outcome::Outcome;

/// Value of [`CpuState::ring`] for a CPU that has no ring.
pub const NO_RING: u32 = u32::MAX;

/// State of one CPU's producer: an element of the `CPUS` map, indexed by the
/// CPU's number, two cache lines long so that CPUs never share one.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuState {
    /// Index of this CPU's ring in `RINGS`, or [`NO_RING`]. Written by user
    /// space before the program is attached.
    pub ring: u32,
    /// The [`Slot`](crate::hook::Slot) of [`Self::filtered`].
    pub filtered_slot: u32,
    /// Position of the next record, bytes since the start; the ring's own
    /// `head` follows it.
    pub head: u64,
    /// The consumer's `tail` when it was last looked at, bytes.
    pub cached_tail: u64,
    /// Frames that entered a program on this CPU, by [`Direction`](crate::hook::Direction).
    pub seen: [u64; 2],
    /// Frames that were recorded in the ring.
    pub recorded: u64,
    /// Frames lost on this CPU whose loss no block has reported yet, over all
    /// slots.
    pub pending: u64,
    /// Frames that the filter did not want, in a row from one slot, and not yet
    /// counted in its [`Losses`]: a lookup for each would cost more than the filter.
    pub filtered: u64,
    /// Padding, zero.
    pub reserved: [u64; 8],
}

/// Frames of one program that were not recorded, by reason: a per-CPU element of the
/// `LOSSES` map, indexed by [`Slot`](crate::hook::Slot).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// By [`Outcome`].
    pub counts: [u64; Outcome::IN_KERNEL],
    /// Of those that are losses, counted since the last block of this slot on this CPU.
    pub pending: u64,
}

/// Brackets that one run of the calibration program takes.
pub const TSC_BRACKETS: usize = 64;

/// A reading of a CPU's TSC event between two of CLOCK_MONOTONIC.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TscBracket {
    /// CLOCK_MONOTONIC before, ns.
    pub before: u64,
    /// The event's count, cycles; a negative errno if it could not be read.
    pub cycles: u64,
    /// CLOCK_MONOTONIC after, ns.
    pub after: u64,
}

const _: () = assert!(size_of::<CpuState>() == 128 && align_of::<CpuState>() == 128);
const _: () = assert!(core::mem::offset_of!(CpuState, head) == 8);
const _: () = assert!(core::mem::offset_of!(CpuState, pending) == 48);
const _: () = assert!(core::mem::offset_of!(CpuState, filtered) == 56);
const _: () = assert!(size_of::<Losses>() == 8 * Outcome::IN_KERNEL + 8);
const _: () = assert!(core::mem::offset_of!(Losses, pending) == 8 * Outcome::IN_KERNEL);
const _: () = assert!(size_of::<TscBracket>() == 24);
