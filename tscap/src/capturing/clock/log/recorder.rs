//! Makes entries of what a tracker learns.

use super::Entry;
use super::phases::PhaseBins;
use crate::capturing::clock::{CrossTimestamp, Observation, Status, Tracker, TscCycles};

/// What became known since the entry before.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Segments that no entry can change any more.
    settled_segments: u64,
    bins: PhaseBins,
    /// Of the entry before.
    before: Option<Status>,
}

impl Recorder {
    /// Takes in what the tracker made of a reading.
    pub fn observe(&mut self, cross: &CrossTimestamp, seen: Observation, tracker: &Tracker) {
        self.bins.observe(cross, seen, tracker);
    }

    /// All that the tracker learned since the last time, at a counter value; `None`
    /// before it has settled.
    pub fn entry(
        &mut self,
        tracker: &mut Tracker,
        tsc: TscCycles,
        utc_bound_ns: Option<u64>,
    ) -> Option<Entry> {
        let status = Status::of(tracker, tsc, utc_bound_ns, self.before.as_ref())?;
        self.before = Some(status);
        let mut samples = tracker.take_samples();
        for sample in &mut samples {
            // Of the stamps of a capture, of which a log has none.
            sample.live_bound_ns = None;
        }
        let (segments, segments_left_out) = tracker.unsettled_segments(&mut self.settled_segments);
        Some(Entry {
            status,
            segments: segments.to_vec(),
            segments_left_out,
            samples,
            phases: self.bins.take_whole(),
        })
    }
}
