//! The clock's log: what `tscap clock --log` keeps, and captures can be converted by.
//!
//! A text of one JSON object a line, to which lines are only ever added; each is
//! written at once and ends with a newline, so that a log is whole up to its last
//! newline however its writer died. Times are ns, TSC values cycles.
//!
//! A [`Header`] is the first line, and the first of each process that continued the
//! log; it alone begins with `{"kind":"clock"`. A process that continues a log cuts
//! off a torn last line, and refuses a log of another boot: counters and
//! CLOCK_MONOTONIC begin anew there. Every other line is an [`Entry`], written when
//! the clock has settled, every second at first and every 10 s after 100 s, and at the end:
//!
//! | field | |
//! |---|---|
//! | `status` | [`Status`]: p̂, skew, offset, both bounds, readings and what became of them |
//! | `segments` | [`Segment`]s that are new or have grown since the entry before |
//! | `segments_left_out` | how many more there were, if any |
//! | `samples` | [`Sample`]s since the entry before, as in a capture's statistics: the narrowest of each second, and those on either side of a step, a jump or a change of the clock's rate |
//! | `phases` | [`Phases`]: the clock against the counter, every 100 ms |
//! | `reference` | [`ReferencePhases`]: the clock against a device that was asked for, every 100 ms; absent without one |
//! | `ntp` | [`NtpPoints`]: exchanges with NTP servers, and the clock against theirs; absent without any |
//!
//! Samples and segments mean what they do in a capture, so that a fit over a log is
//! one over a capture's own history. Fields may be added; a change of their meaning
//! changes `v`.
//!
//! About 1.2 MB an hour, 200 MB in 7 days; where the clock's rate changes 8 times a
//! second or more often, 13 MB an hour at most, and 600 bytes each time that the clock is
//! set or the counter jumps. An exchange with an NTP server takes 300 bytes.

mod digest;
mod ntp;
mod phases;
mod reader;
mod recorder;
mod reference;
mod writer;

use serde::{Deserialize, Serialize};

pub use digest::{Digest, NtpHistory, Point, Totals};
pub use ntp::NtpPoints;
pub use phases::Phases;
pub use reader::{LogReader, ReadLogError, is_header};
pub use recorder::Recorder;
pub use reference::ReferencePhases;
pub use writer::{LogWriter, WriteLogError};

use tscap_clock::{Sample, Segment, Status};

/// What a header says that it heads.
pub const KIND: &str = "clock";
/// Version of the format.
pub const VERSION: u32 = 1;

/// The first line of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`KIND`].
    pub kind: String,
    /// [`VERSION`].
    pub v: u32,
    /// The machine's boot, as in `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Version of tscap.
    pub tscap: String,
}

impl Header {
    /// Of this tscap.
    pub fn new(boot_id: impl Into<String>) -> Self {
        Self {
            kind: KIND.into(),
            v: VERSION,
            boot_id: boot_id.into(),
            tscap: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// What became known since the entry before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The clock at this moment.
    pub status: Status,
    /// Segments that are new or have grown.
    pub segments: Vec<Segment>,
    /// How many more there were, forgotten because there were too many.
    #[serde(default, skip_serializing_if = "tscap_clock::is_zero")]
    pub segments_left_out: u64,
    /// Samples, in any order.
    pub samples: Vec<Sample>,
    /// The clock against the counter.
    pub phases: Vec<Phases>,
    /// The clock against another reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferencePhases>,
    /// Exchanges with NTP servers since the entry before, by server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ntp: Vec<NtpPoints>,
}

/// A whole line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A process began.
    Header(Header),
    /// It said this.
    Entry(Box<Entry>),
}

#[cfg(test)]
mod tests;
