//! One-way delay (RFC 7679) and delay variation (RFC 3393) of a flow.

use serde::{Deserialize, Serialize};
use tscap_common::stream::{STAMP_BITS, StreamHeader};

use super::receive_clock::ReceiveClock;
use super::sender_clock::SenderClock;
use tscap_clock::interval_ns;
use tscap_clock::{CounterReport, FileNs, RawStamp, TaiNs};
use tscap_statistics::{Distribution, Summary};

/// Two readings of one counter may lie so far apart, ns. Those of two machines
/// lie hours or days apart.
pub(super) const SAME_COUNTER_NS: u64 = 1_000_000_000;

/// When a frame was sent and received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) sent: StreamHeader,
    pub(super) received: FileNs,
    pub(super) raw: Option<RawStamp>,
}

/// Delays of a flow so far.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    path: Distribution,
    variation: Distribution,
    interval_error: Distribution,
    intervals: IntervalSources,
    sender: SenderClock,
    /// The latest frame and its number.
    latest: Option<(u64, Passage)>,
}

/// How the intervals of two frames were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalSources {
    /// Pairs of frames whose intervals are those of the TSC on both sides, by its rate
    /// against CLOCK_MONOTONIC_RAW: no clock that is set or slewed is in them. In a
    /// capture of less than a second that rate is not known, and p̂ has the slews of the
    /// host's clock in it. It takes raw stamps in the file
    /// (`--keep-raw`) and a sender that read the same TSC.
    pub tsc_pairs: u64,
    /// Pairs of frames whose intervals are differences of the file's stamps and
    /// of the sender's CLOCK_TAI.
    pub stamp_pairs: u64,
}

/// Delays, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayReport {
    /// Receive stamp less the sender's CLOCK_TAI, of the first copy of each
    /// frame. A negative delay is the difference of two clocks showing.
    pub path_ns: Option<Summary>,
    /// Greatest error of a path delay by the clocks, ns: where the sender's TSC and CLOCK_TAI are
    /// those of the receiving host. Absent where nothing says so, as of another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_ns: Option<u64>,
    /// Inter-arrival less inter-send time of two frames that were sent and came
    /// one right after the other (ipdv, RFC 3393).
    pub variation_ns: Option<Summary>,
    /// |inter-arrival − inter-send|, of the same pairs.
    pub interval_error_ns: Option<Summary>,
    /// How the intervals were found.
    pub intervals: IntervalSources,
}

impl Delays {
    pub(super) fn new() -> Self {
        Self {
            path: Distribution::new(),
            variation: Distribution::new(),
            interval_error: Distribution::new(),
            intervals: IntervalSources::default(),
            sender: SenderClock::default(),
            latest: None,
        }
    }

    /// Takes in the first copy of the frame with this number, in order of
    /// arrival.
    pub(super) fn add(&mut self, number: u64, frame: Passage, clock: &ReceiveClock) {
        if let Some(received) = clock.to_tai(frame.received) {
            self.path.add(path_delay_ns(frame.sent.tai, received));
        }
        self.sender
            .take(&frame.sent, clock.moment(frame.received, frame.raw));
        if let Some((latest, before)) = self.latest.replace((number, frame))
            && latest + 1 == number
        {
            let variation = self.variation_ns(&before, &frame, clock);
            self.variation.add(variation);
            self.interval_error.add(variation.saturating_abs());
        }
    }

    fn variation_ns(&mut self, from: &Passage, to: &Passage, clock: &ReceiveClock) -> i64 {
        if let (Some(from), Some(to)) = (counts(from, clock), counts(to, clock)) {
            self.intervals.tsc_pairs += 1;
            let ns = |from, to| interval_ns(from, to, clock.counter.as_ref());
            return ns(from.received, to.received).saturating_sub(ns(from.sent, to.sent));
        }
        self.intervals.stamp_pairs += 1;
        let arrival = to.received.0.wrapping_sub(from.received.0).cast_signed();
        arrival.saturating_sub(signed_difference(to.sent.tai.wrapping_sub(from.sent.tai)))
    }

    pub(super) fn report(self, clock: &ReceiveClock) -> DelayReport {
        let path_ns = self.path.summary();
        let clocks_ns = clock.bound_from(&self.sender);
        DelayReport {
            clocks_ns: clocks_ns.filter(|_| path_ns.is_some()),
            path_ns,
            variation_ns: self.variation.summary(),
            interval_error_ns: self.interval_error.summary(),
            intervals: self.intervals,
        }
    }
}

/// A frame's TSC at both ends.
struct Counts {
    sent: RawStamp,
    received: RawStamp,
}

/// `None` unless both ends read one counter.
fn counts(frame: &Passage, clock: &ReceiveClock) -> Option<Counts> {
    let received = frame.raw?;
    let host = clock.moment(frame.received, frame.raw);
    if host.is_some_and(|host| !host.may_have_counted(&frame.sent)) {
        return None;
    }
    let sent = unwrapped_counter(frame.sent.tsc, received, clock.counter.as_ref()?)?;
    Some(Counts { sent, received })
}

/// A sender's reading of the counter that stamped its frame's arrival; `None` if it has read
/// none, or another one.
pub fn unwrapped_counter(
    sent: u64,
    received: RawStamp,
    counter: &CounterReport,
) -> Option<RawStamp> {
    let cycles = signed_difference(received.0.wrapping_sub(sent));
    let apart_ns = counter.ns_per_cycle_2_58.duration_ns(cycles.unsigned_abs());
    let is_same = sent != 0 && apart_ns < SAME_COUNTER_NS;
    is_same.then(|| RawStamp(received.0.wrapping_add_signed(-cycles)))
}

/// The receive time less the send stamp, whose 48 bits are those of the nearest
/// instant: right for delays within ±39 hours.
pub fn path_delay_ns(sent: u64, received: TaiNs) -> i64 {
    signed_difference(received.0.wrapping_sub(sent))
}

/// The difference of two stamps of which 48 bits are known, as the one nearest
/// to 0.
pub fn signed_difference(difference: u64) -> i64 {
    let unknown = u64::BITS - STAMP_BITS;
    (difference << unknown).cast_signed() >> unknown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tscap_common::stream::STAMP_MASK;

    use super::*;
    use tscap_clock::NsPerCycle;

    const NOW: u64 = 1_800_000_000_000_000_000;

    /// Cycles of half a nanosecond.
    fn tsc_clock() -> ReceiveClock {
        let mut clock = ReceiveClock::default();
        clock.counter = Some(CounterReport {
            ns_per_cycle_2_58: NsPerCycle(1 << 57),
            rate_bound_ppb: 1,
            raw: None,
        });
        clock
    }

    fn frame(sent_ns: u64, received_ns: u64) -> Passage {
        Passage {
            sent: StreamHeader {
                run: 1,
                flow: 0,
                seq: 0,
                tsc: 0,
                tai: sent_ns & STAMP_MASK,
            },
            received: FileNs(received_ns),
            raw: None,
        }
    }

    fn with_tsc(mut frame: Passage, sent: u64, received: u64) -> Passage {
        frame.sent.tsc = sent & STAMP_MASK;
        frame.raw = Some(RawStamp(received));
        frame
    }

    fn report(frames: &[(u64, Passage)], clock: &ReceiveClock) -> DelayReport {
        let mut delays = Delays::new();
        for (number, frame) in frames {
            delays.add(*number, *frame, clock);
        }
        delays.report(clock)
    }

    #[test]
    fn variation_is_that_of_neighbours_only() {
        let frames = [
            (0, frame(NOW, NOW + 100)),
            (1, frame(NOW + 1_000, NOW + 1_150)),
            // 2 is lost, 3 comes late.
            (4, frame(NOW + 4_000, NOW + 4_500)),
            (3, frame(NOW + 3_000, NOW + 4_600)),
            (5, frame(NOW + 5_000, NOW + 5_100)),
            (6, frame(NOW + 6_000, NOW + 6_030)),
        ];
        let report = report(&frames, &ReceiveClock::default());
        let variation = report.variation_ns.unwrap();
        assert_eq!((variation.n, variation.negative), (2, 1));
        assert_eq!((variation.min, variation.max), (-70, 50));
        let error = report.interval_error_ns.unwrap();
        assert_eq!((error.min, error.max), (50, 70));
        assert_eq!(report.intervals.stamp_pairs, 2);
    }

    #[test]
    fn without_the_offset_to_tai_there_is_no_path_delay() {
        let frames = [(0, frame(NOW, NOW + 5))];
        assert_eq!(report(&frames, &ReceiveClock::default()).path_ns, None);
        let clock = ReceiveClock::with_tai_offset(0);
        assert_eq!(report(&frames, &clock).path_ns.unwrap().min, 5);
    }

    #[test]
    fn the_path_delay_is_in_tai_and_may_be_negative() {
        const S: u64 = 1_000_000_000;
        let clock = ReceiveClock::with_tai_offset(37);
        let frames = [
            (0, frame(NOW + 37 * S, NOW + 200)),
            (1, frame(NOW + 37 * S + 1_000, NOW + 993)),
        ];
        let path = report(&frames, &clock).path_ns.unwrap();
        assert_eq!((path.min, path.max, path.negative), (-7, 200, 1));
    }

    #[test]
    fn intervals_come_from_one_tsc_on_both_sides() {
        // The file's stamps jump by a second; the counter knows nothing of it.
        let first = with_tsc(frame(NOW, NOW), 10_000, 10_400);
        let second = frame(NOW + 1_000, NOW + 1_000_001_000);
        let report = |second| report(&[(0, first), (1, second)], &tsc_clock());
        let with = report(with_tsc(second, 12_000, 12_460));
        assert_eq!(with.variation_ns.unwrap().max, 30);
        assert_eq!(
            (with.intervals.tsc_pairs, with.intervals.stamp_pairs),
            (1, 0)
        );
        for without in [
            second,
            with_tsc(second, 0, 12_460),
            // Another machine's.
            with_tsc(second, 12_000 + 3_000_000_000, 12_460),
        ] {
            let report = report(without);
            assert_eq!(report.variation_ns.unwrap().max, 1_000_000_000);
            assert_eq!(
                (report.intervals.tsc_pairs, report.intervals.stamp_pairs),
                (0, 1)
            );
        }
    }

    #[test]
    fn the_tsc_may_wrap_on_the_wire() {
        let wrap = 1 << STAMP_BITS;
        let frames = [
            (0, with_tsc(frame(NOW, NOW), wrap - 100, wrap + 300)),
            (1, with_tsc(frame(NOW, NOW), wrap + 900, wrap + 1_310)),
        ];
        let report = report(&frames, &tsc_clock());
        assert_eq!(report.variation_ns.unwrap().max, 5);
        assert_eq!(report.intervals.tsc_pairs, 1);
    }

    proptest! {
        #[test]
        fn a_send_stamp_unwraps_to_the_nearest_instant(
            sent in 1u64 << 60..1 << 62, delay in -(1i64 << 47)..1 << 47
        ) {
            let received = TaiNs(sent.wrapping_add_signed(delay));
            prop_assert_eq!(path_delay_ns(sent & STAMP_MASK, received), delay);
        }
    }
}
