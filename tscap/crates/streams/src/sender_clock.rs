//! Whether the clocks of a sender are those of the host that its frames came to.
//!
//! A frame of `tscap gen` has the sender's TSC and its CLOCK_TAI, read one right after the
//! other. On the receiving host both clocks show these values at one moment too, if they are the
//! same clocks: those of another host, which was started at another time, do not.

use tscap_common::stream::StreamHeader;

use super::stamps::{SAME_COUNTER_NS, path_delay_ns, signed_difference};
use tscap_clock::{NsPerCycle, RawStamp, TaiNs, TscCycles};
use tscap_time::tsc;

/// So close the two readings of the sender come to the receiving host's clocks at least once, ns:
/// more than reading CLOCK_TAI takes.
const NEAR_NS: u64 = 5_000;
/// A sender may be interrupted between its two readings for so long, ns.
const INTERRUPTED_NS: u64 = 1_000_000;
/// A rate is known after so long, ns.
const BASELINE_NS: u64 = 50_000_000;
/// What may hold up a reading of both clocks, cycles.
const WIDEST_CYCLES: u64 = 10_000;

/// What the clocks of the receiving host showed at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMoment {
    /// Its TSC.
    pub tsc: RawStamp,
    /// Its CLOCK_TAI.
    pub tai: TaiNs,
    /// How long a cycle takes.
    pub rate: NsPerCycle,
}

impl HostMoment {
    /// How far the sender's CLOCK_TAI is behind that of the host, if its TSC is the host's, ns;
    /// `None` if it is not, or was not read.
    fn behind_ns(&self, sent: &StreamHeader) -> Option<u64> {
        let cycles = signed_difference(self.tsc.0.wrapping_sub(sent.tsc));
        let counted_ns = self.rate.duration_ns(cycles.unsigned_abs());
        if sent.tsc == 0 || counted_ns >= SAME_COUNTER_NS {
            return None;
        }
        let counted_ns = i64::try_from(counted_ns).ok()? * cycles.signum();
        Some(path_delay_ns(sent.tai, self.tai).abs_diff(counted_ns))
    }

    /// Whether the sender's TSC may be that of the host.
    pub fn may_have_counted(&self, sent: &StreamHeader) -> bool {
        self.behind_ns(sent).is_some_and(|it| it <= INTERRUPTED_NS)
    }
}

/// What the frames of a stream say of their sender's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderClock {
    nearest_ns: Option<u64>,
}

impl SenderClock {
    /// Takes in a frame, and a moment of the receiving host near its arrival.
    #[inline]
    pub fn take(&mut self, sent: &StreamHeader, host: Option<HostMoment>) {
        let behind_ns = host.and_then(|host| host.behind_ns(sent));
        if let Some(ns) = behind_ns {
            self.nearest_ns = Some(self.nearest_ns.map_or(ns, |nearest| nearest.min(ns)));
        }
    }

    /// Whether they are those of the receiving host, whose times are off by so much, ns.
    pub fn is_the_receivers(&self, bound_ns: u64) -> bool {
        self.nearest_ns
            .is_some_and(|ns| ns <= NEAR_NS.saturating_add(bound_ns))
    }
}

/// The clocks of this host beside each other, where no stamps of its TSC say it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostClocksBeside {
    first: Option<(TscCycles, TaiNs)>,
    moment: Option<HostMoment>,
}

impl HostClocksBeside {
    /// Reads the TSC and CLOCK_TAI of this host once more.
    pub fn read(&mut self) {
        let before = tsc::read();
        let tai = TaiNs::now();
        let width = tsc::read().0.wrapping_sub(before.0);
        if width <= WIDEST_CYCLES {
            self.take(before, tai);
        }
    }

    fn take(&mut self, tsc: TscCycles, tai: TaiNs) {
        let (first, since) = *self.first.get_or_insert((tsc, tai));
        let (Some(cycles), Some(ns)) = (tsc.0.checked_sub(first.0), tai.0.checked_sub(since.0))
        else {
            // One of them was set.
            *self = Self::default();
            return;
        };
        let rate = NsPerCycle::of(ns, cycles).filter(|_| ns >= BASELINE_NS);
        self.moment = rate.map(|rate| HostMoment {
            tsc: RawStamp(tsc.0),
            tai,
            rate,
        });
    }

    /// What they showed last, once it is known how fast the TSC is.
    pub fn moment(&self) -> Option<HostMoment> {
        self.moment
    }
}

#[cfg(test)]
mod tests {
    use tscap_common::stream::STAMP_MASK;

    use super::*;

    const NOW: u64 = 1_800_000_000_000_000_000;

    /// Cycles of half a nanosecond.
    fn host() -> HostMoment {
        HostMoment {
            tsc: RawStamp(9_000_000_000_000),
            tai: TaiNs(NOW),
            rate: NsPerCycle(NsPerCycle::ONE.0 / 2),
        }
    }

    /// Sent so long before by both clocks, ns.
    fn sent(tsc_ns: u64, tai_ns: u64) -> StreamHeader {
        StreamHeader {
            run: 1,
            flow: 0,
            seq: 0,
            tsc: (host().tsc.0 - 2 * tsc_ns) & STAMP_MASK,
            tai: (NOW - tai_ns) & STAMP_MASK,
        }
    }

    fn is_here(frames: &[StreamHeader]) -> bool {
        let mut sender = SenderClock::default();
        frames.iter().for_each(|it| sender.take(it, Some(host())));
        sender.is_the_receivers(20)
    }

    #[test]
    fn a_sender_is_here_if_both_its_clocks_are() {
        assert!(is_here(&[sent(1_000, 900)]));
        assert!(is_here(&[sent(1_000, 6_020)]));
        assert!(!is_here(&[sent(1_000, 6_021)]));
        // Interrupted between its readings, once.
        assert!(is_here(&[sent(900_000, 1_000), sent(1_000, 1_100)]));
        // Another host, 5 ms ahead, and one that was started at nearly the same time.
        assert!(!is_here(&[sent(1_000, 5_001_000)]));
        assert!(!is_here(&[sent(300_000_000, 1_000)]));
        assert!(!is_here(&[StreamHeader {
            tsc: 0,
            ..sent(0, 0)
        }]));
        assert!(!is_here(&[]));
    }

    #[test]
    fn a_counter_may_be_the_hosts_though_a_reading_was_interrupted() {
        for (frame, may) in [
            (sent(1_000, 1_000_900), true),
            (sent(1_000, 1_001_100), false),
            (sent(1_000_000_000, 1_000_000_000), false),
            (
                StreamHeader {
                    tsc: 0,
                    ..sent(0, 0)
                },
                false,
            ),
        ] {
            assert_eq!(host().may_have_counted(&frame), may, "{frame:?}");
        }
    }

    #[test]
    fn the_hosts_clocks_are_read_until_their_rate_is_known() {
        let mut beside = HostClocksBeside::default();
        let mut at = |ns: u64| {
            beside.take(TscCycles(7 + 2 * ns), TaiNs(NOW + ns));
            beside.moment()
        };
        assert_eq!((at(0), at(49_999_999)), (None, None));
        let known = at(50_000_000).unwrap();
        assert_eq!((known.tsc.0, known.tai.0), (100_000_007, NOW + 50_000_000));
        assert_eq!(known.rate, NsPerCycle(NsPerCycle::ONE.0 / 2));
        // CLOCK_TAI was set back to before the first reading.
        beside.take(TscCycles(200_000_000), TaiNs(NOW - 1));
        assert_eq!(beside.moment(), None);
    }
}
