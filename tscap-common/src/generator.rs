//! What user space tells the frame generator's program, and what it counts.

use crate::gaps::BUCKETS;

/// Array map of one [`Orders`].
pub const ORDERS: &str = "ORDERS";
/// Array map of one [`Sending`].
pub const SENDING: &str = "SENDING";
/// Array map of one `u32`: not zero tells the program to send no more.
pub const STOP: &str = "STOP";
/// Array map of the histogram of gap errors ([`crate::gaps`]).
pub const GAPS: &str = "GAPS";
/// Device map of one entry: the interface that the frames go to.
pub const TARGET: &str = "TARGET";
/// u32: where the payload begins, bytes; one of [`PAYLOADS_AT`].
pub const PAYLOAD_AT: &str = "PAYLOAD_AT";
/// u32: how the TSC is read; one of those below. A program is refused for what it
/// never does, unless a value that can't change says that it does not.
pub const TSC_BY: &str = "TSC_BY";
/// Not at all.
pub const TSC_BY_NOTHING: u32 = 0;
/// By a perf event.
pub const TSC_BY_PERF: u32 = 1;
/// By a kfunc.
pub const TSC_BY_KFUNC: u32 = 2;

/// Where the payload can begin: behind Ethernet, IPv4 and UDP, the same with a
/// VLAN tag, with IPv6, with both.
pub const PAYLOADS_AT: [usize; 4] = [42, 46, 62, 66];
/// Room for the headers before the payload, bytes.
pub const HEADERS: usize = 72;
/// Flat out, frames that share a stamp: the kernel collects so many before it
/// hands them to the interface together (`DEV_MAP_BULK_SIZE`, include/net/xdp.h).
pub const BULK: u64 = 16;

/// What to send: written by user space before the program runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Headers of a frame of flow 0; the program fills in source port and
    /// checksum.
    pub headers: [u8; HEADERS],
    /// Sum of the words of the UDP checksum that are the same in all frames:
    /// pseudo header, destination port, length.
    pub checksum: u32,
    /// Number of flows, at least 1; frames take turns.
    pub flows: u32,
    /// From the start of one frame to that of the next, ns; with
    /// `period_fraction` 0: as fast as can be.
    pub period_ns: u64,
    /// In units of 2^-32 ns.
    pub period_fraction: u32,
    /// Names the run in each payload.
    pub run: u16,
    /// Whether the TSC can be read: 1 or 0.
    pub reads_tsc: u16,
    /// What to add to the TSC event's count, cycles.
    pub tsc_offset: u64,
}

/// Where the program is: set by user space before a run, then the program's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Frames given to the interface.
    pub sent: u64,
    /// Frames that could not be: they are too short, or the interface is gone.
    /// After the first nothing is sent any more.
    pub failed: u64,
    /// Frames that went out more than a period after their time.
    pub late: u64,
    /// When the next frame is due, CLOCK_MONOTONIC, ns; 0 for now.
    pub due_ns: u64,
    /// In units of 2^-32 ns.
    pub due_fraction: u32,
    /// Flow of the next frame.
    pub flow: u32,
    /// Its sequence number.
    pub seq: u32,
    /// Padding, zero.
    pub reserved: u32,
    /// When the first frame was sent, CLOCK_MONOTONIC, ns; 0 before.
    pub first_ns: u64,
    /// When the latest frame was sent (flat out: the first of its bulk).
    pub last_ns: u64,
    /// The latest stamps.
    pub tsc: u64,
    /// CLOCK_TAI, ns.
    pub tai: u64,
}

/// The histogram of gap errors.
pub type Gaps = [u64; BUCKETS];

const _: () = assert!(size_of::<Orders>() == 104);
const _: () = assert!(size_of::<Sending>() == 80);
