//! Clocks as types, so that mixing them does not compile.

#![allow(unsafe_code, reason = "system calls without a safe wrapper")]

pub mod acpi_timer;
pub mod cpuinfo;
pub mod hpet;
mod now;
pub mod ptp;
pub mod raw_clock;
pub mod timex;
pub mod tsc;

pub use now::now;
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second, as of offsets between clocks.
pub const NS_PER_S: i64 = 1_000_000_000;

/// CLOCK_MONOTONIC, nanoseconds since boot (suspend not counted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MonoNs(pub u64);

/// CLOCK_MONOTONIC_RAW, nanoseconds since boot, which nobody slews.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonoRawNs(pub u64);

/// CLOCK_BOOTTIME, nanoseconds since boot, those of suspend too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BootNs(pub u64);

/// CLOCK_TAI, nanoseconds since 1970-01-01 00:00:00 TAI (as far as the kernel
/// has been told the offset to UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaiNs(pub u64);

/// CLOCK_REALTIME, nanoseconds since 1970-01-01 00:00:00 UTC; good to 2554.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RealNs(pub u64);

/// The CPU's time-stamp counter, cycles since some reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TscCycles(pub u64);

/// A stamp as the XDP program took it, in the unit of its [`StampSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RawStamp(pub u64);

/// What a stamp of some clock must be increased by to give CLOCK_REALTIME, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OffsetNs(pub i64);

impl RealNs {
    /// As a time since the epoch, for pcapng.
    pub fn since_epoch(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl RawStamp {
    /// After every stamp; no block has it.
    pub const NEVER: Self = Self(u64::MAX);

    /// The wall-clock time of a stamp that is `offset` behind CLOCK_REALTIME.
    /// Exact; wraps outside 1970..2554, which no clock shows.
    #[inline]
    pub fn to_real(self, offset: OffsetNs) -> RealNs {
        RealNs(self.0.wrapping_add_signed(offset.0))
    }
}

/// Which clock an XDP program stamps frames with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StampSource {
    /// CLOCK_MONOTONIC.
    Ktime,
    /// CLOCK_TAI.
    Tai,
    /// The CPU's time-stamp counter, by one [`TscPath`](super::TscPath) or another.
    Tsc,
}

impl StampSource {
    /// Name as on the command line and in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ktime => "ktime",
            Self::Tai => "tai",
            Self::Tsc => "tsc",
        }
    }
}

/// A PTP hardware clock's time, ns since an epoch of its own: that of TAI under PTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PhcNs(pub u64);

/// A device, read between two readings of CLOCK_REALTIME, all in one system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhcReading {
    /// The counter before and after the call.
    pub tsc: [TscCycles; 2],
    /// CLOCK_REALTIME before and after the device was read; twice the same where the
    /// hardware latches both.
    pub real: [RealNs; 2],
    /// The device's time.
    pub phc: PhcNs,
}

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
