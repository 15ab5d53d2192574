//! One look at a packet, as the matcher gets it.

use tscap_clock::RawStamp;

/// Where a packet is seen on its passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAt {
    /// Where it enters.
    Entry,
    /// Where it leaves: number of the exit, less than [`MOST_EXITS`].
    Exit(usize),
}

/// Most exits of a passage.
pub const MOST_EXITS: usize = 2;

/// A packet at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where.
    pub at: SeenAt,
    /// What tells the packet from others.
    pub key: u64,
    /// When, comparable over all CPUs.
    pub stamp: RawStamp,
    /// Number of the CPU on which the program stamped the packet.
    pub cpu: u32,
    /// Length of the frame, bytes.
    pub length: u32,
}
