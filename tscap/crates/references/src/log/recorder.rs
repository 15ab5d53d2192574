//! Makes entries of what a tracker learns.

use std::net::SocketAddr;

use super::Entry;
use super::ntp::NtpRecorder;
use super::phases::PhaseBins;
use super::reference::ReferenceBins;
use crate::ntp::NtpPoint;
use crate::{PhcSighting, PhcStatus};
use tscap_clock::{CrossTimestamp, Observation, Status, Tracker, TscCycles};
use tscap_time::NS_PER_S;

/// What became known since the entry before.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Segments that no entry can change any more.
    settled_segments: u64,
    bins: PhaseBins,
    reference: Option<(String, ReferenceBins)>,
    ntp: NtpRecorder,
    /// Of the entry before.
    before: Option<Status>,
}

impl Recorder {
    /// Takes in what the tracker made of a reading.
    pub fn observe(&mut self, cross: &CrossTimestamp, seen: Observation, tracker: &Tracker) {
        self.bins.observe(cross, seen, tracker);
        if let Observation::Stepped { .. } | Observation::CounterJumped { .. } = seen {
            self.restart_reference();
        }
    }

    /// Takes in a look at another reference, by the name of its device.
    pub fn observe_reference(
        &mut self,
        device: &str,
        seen: PhcSighting,
        status: &PhcStatus,
        tracker: &Tracker,
    ) {
        let Some(counter) = tracker.counter() else {
            return;
        };
        let (_, bins) = self
            .reference
            .get_or_insert_with(|| (device.to_owned(), ReferenceBins::default()));
        // TAI, where the device counts that.
        let seconds = (seen.ahead_ns - status.host_ahead_ns + NS_PER_S / 2).div_euclid(NS_PER_S);
        let seen = PhcSighting {
            ahead_ns: seen.ahead_ns - seconds * NS_PER_S,
            ..seen
        };
        bins.take(seen, counter.rate(), status.host_rate_ppb);
    }

    /// Takes in an exchange with an NTP server.
    pub fn observe_ntp(&mut self, server: SocketAddr, point: NtpPoint) {
        self.ntp.take(server, point);
    }

    /// Another reference, or the clock, was set, or the counter jumped.
    pub fn restart_reference(&mut self) {
        if let Some((_, bins)) = &mut self.reference {
            bins.restart();
        }
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
            reference: self
                .reference
                .as_mut()
                .and_then(|(device, bins)| bins.take_whole(device)),
            ntp: self.ntp.take_all(),
        })
    }
}
