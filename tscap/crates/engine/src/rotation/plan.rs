//! What is asked of a rotation.

use std::path::PathBuf;
use std::time::Duration;

/// A capture into several files, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationPlan {
    /// When the next file begins.
    pub limits: Limits,
    /// What the files are called.
    pub naming: Naming,
    /// The capture ends when the last of so many periods does.
    pub periods: Option<u64>,
    /// Program to run on each file that is complete, with the file's name as its
    /// only argument.
    pub command: Option<PathBuf>,
}

/// When the next file begins: with the first block of which one of these says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The file has at least so many bytes. It exceeds them by one block at most.
    pub bytes: Option<u64>,
    /// The file has so many frames.
    pub frames: Option<u64>,
    /// Time: then also without a block.
    pub period: Option<Period>,
}

/// Stretches of time that get a file each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// So long each, by a clock that nobody sets (CLOCK_MONOTONIC).
    Every(Duration),
    /// Each begins when CLOCK_REALTIME is a multiple of this since the epoch (UTC).
    MultipleOf(Duration),
}

/// How names are made, and which files go away again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// tcpdump's: the name given, as a strftime format with periods (`-G`), and a
    /// number behind it with sizes (`-C`).
    Tcpdump {
        /// The name given is a format for the start of the period.
        has_time: bool,
        /// A number stands behind it, from the second file of a period on, or
        /// from the first with `ring`.
        has_number: bool,
        /// Numbers below this, with leading zeros; then from 0 again, which
        /// overwrites.
        ring: Option<u64>,
    },
    /// dumpcap's: `prefix_00001_YYYYMMDDHHMMSS.suffix`.
    Dumpcap {
        /// So many files are kept, the latest ones.
        ring: Option<u64>,
    },
}
