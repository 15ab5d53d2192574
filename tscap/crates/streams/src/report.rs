//! What came through, for machines (JSON) and people.

use serde::{Deserialize, Serialize};

use super::delay::DelayReport;
use super::receive_clock::DelayBasis;
use super::sequence::{Loss, Reordering};

/// Version of [`StreamReport`].
pub(super) const VERSION: u32 = 1;

/// What came through of the streams of `tscap gen`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Version of this object.
    pub v: u32,
    /// Each interface, in the file's order.
    pub interfaces: Vec<InterfaceReport>,
    /// Whether the whole file could be read; why not stands in the warnings.
    pub is_whole: bool,
    /// What to know before believing the figures.
    pub warnings: Vec<String>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceReport {
    /// Its name, if the file has it.
    pub name: Option<String>,
    /// What its frames are.
    pub counts: Counts,
    /// Step of its stamps, ns.
    pub stamp_resolution_ns: u64,
    /// How far its path delays can be trusted.
    pub delay_basis: DelayBasis,
    /// Each flow of each run.
    pub streams: Vec<StreamSummary>,
}

/// Frames: `frames` = `streams` + `others` + `malformed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All.
    pub frames: u64,
    /// Of streams: the sum of their `received`.
    pub streams: u64,
    /// Without a stream header.
    pub others: u64,
    /// With a stream header that is not to be trusted, or cut before it; not
    /// counted in any stream.
    pub malformed: u64,
    /// Of `streams`: with the right UDP checksum.
    pub checksum_right: u64,
    /// Of `streams`: sent without a checksum.
    pub checksum_absent: u64,
    /// Of `streams`: cut by the snaplen, so that the checksum can't be known.
    pub checksum_unknown: u64,
    /// Of `malformed`: cut before it can be told what they are.
    pub cut: u64,
    /// Of `malformed`: lengths in the headers contradict the frame's.
    pub length_wrong: u64,
    /// Of `malformed`: a wrong UDP checksum.
    pub checksum_wrong: u64,
    /// Of `malformed`: UDP source port and flow disagree.
    pub port_wrong: u64,
}

/// Which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StreamId {
    /// Run, as in the payload.
    pub run: u16,
    /// Flow of the run.
    pub flow: u16,
}

/// One flow of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamSummary {
    /// Which.
    #[serde(flatten)]
    pub id: StreamId,
    /// Loss and duplication.
    #[serde(flatten)]
    pub loss: Loss,
    /// Reordering.
    #[serde(flatten)]
    pub reordering: Reordering,
    /// Delays.
    #[serde(flatten)]
    pub delay: DelayReport,
}

impl StreamReport {
    /// Whether there is any stream.
    pub fn has_streams(&self) -> bool {
        let mut interfaces = self.interfaces.iter();
        interfaces.any(|interface| !interface.streams.is_empty())
    }
}
