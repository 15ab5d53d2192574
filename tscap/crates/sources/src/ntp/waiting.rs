//! Packets that were taken out of the rings, in the order of time.

use tscap_common::hook::Direction;

use tscap_clock::{NsPerCycle, TscCycles};
use tscap_references::ntp::PacketStamp;

/// A frame that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub at: PacketStamp,
    pub direction: Direction,
    pub frame: Vec<u8>,
}

/// What is not given yet: what came before some of it may be in a ring still. A reply is never
/// given before its request, however far their stamps are off.
#[derive(Debug)]
pub(super) struct Waiting {
    asking: Direction,
    rate: NsPerCycle,
    sightings: Vec<Sighting>,
    /// Of these the errors are known.
    known: usize,
    moved: Moved,
}

/// Offsets of counters to the TSC that have moved.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// By so much since the packets were taken out, ns.
    by_ns: u64,
    /// Stamps before this may be by the offsets of before.
    until: TscCycles,
}

impl Waiting {
    /// Nothing yet. Requests have the direction `asking`; `rate` is the counter's.
    pub fn new(asking: Direction, rate: NsPerCycle) -> Self {
        Self {
            asking,
            rate,
            sightings: Vec::new(),
            known: 0,
            moved: Moved {
                by_ns: 0,
                until: TscCycles(0),
            },
        }
    }

    /// A packet that was taken out, with the error of the offsets by which it has its stamp.
    pub fn push(&mut self, mut sighting: Sighting) {
        let Moved { by_ns, until } = self.moved;
        if sighting.at.tsc.0 <= until.0.saturating_add(self.cycles(by_ns)) {
            sighting.at.error_ns = sighting.at.error_ns.saturating_add(by_ns);
        }
        self.sightings.push(sighting);
    }

    /// Whether there are packets after which nobody has looked at the counters.
    pub fn is_unknown(&self) -> bool {
        self.known < self.sightings.len()
    }

    /// All are taken out that were in the rings.
    pub fn taken_out(&mut self) {
        self.moved.by_ns = 0;
    }

    /// The counters were looked at until `now`: since the look before, their offsets have moved
    /// by up to `by_ns`.
    pub fn looked(&mut self, by_ns: u64, now: TscCycles) {
        for sighting in &mut self.sightings[self.known..] {
            sighting.at.error_ns = sighting.at.error_ns.saturating_add(by_ns);
        }
        self.known = self.sightings.len();
        if by_ns > 0 {
            self.moved.by_ns = self.moved.by_ns.saturating_add(by_ns);
            self.moved.until = now;
        }
    }

    /// Takes what nothing can come before any more: before `settled` all was in the rings.
    pub fn settled(&mut self, settled: TscCycles) -> Vec<Sighting> {
        let mut sightings = std::mem::take(&mut self.sightings);
        sightings.sort_by_key(|it| self.moment(it));
        let until = sightings.partition_point(|it| self.moment(it) < settled.0);
        self.sightings = sightings.split_off(until);
        self.known = self.sightings.len();
        sightings
    }

    /// The earliest moment of a request, and the latest of a reply.
    fn moment(&self, sighting: &Sighting) -> u64 {
        let PacketStamp { tsc, error_ns } = sighting.at;
        let error = self.cycles(error_ns);
        if sighting.direction == self.asking {
            tsc.0.saturating_sub(error)
        } else {
            tsc.0.saturating_add(error)
        }
    }

    fn cycles(&self, ns: u64) -> u64 {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        match ns {
            0 => 0,
            ns => self.rate.cycles_in(ns).unsigned_abs().saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cycles a nanosecond.
    fn waiting() -> Waiting {
        let rate = NsPerCycle::of(500, 1_000).expect("a rate");
        Waiting::new(Direction::Out, rate)
    }

    fn seen(direction: Direction, tsc: u64) -> Sighting {
        Sighting {
            at: PacketStamp {
                tsc: TscCycles(tsc),
                error_ns: 10,
            },
            direction,
            frame: Vec::new(),
        }
    }

    /// Their stamps and errors.
    fn given(waiting: &mut Waiting, settled: u64) -> Vec<(u64, u64)> {
        let given = waiting.settled(TscCycles(settled));
        given
            .iter()
            .map(|it| (it.at.tsc.0, it.at.error_ns))
            .collect()
    }

    #[test]
    fn they_are_given_in_the_order_of_time_once_nothing_can_come_before() {
        let mut waiting = waiting();
        // A reply that is at 5,021 at the latest, and a request that left at 4,969 at the earliest.
        for sighting in [
            seen(Direction::In, 5_000),
            seen(Direction::Out, 1_000),
            seen(Direction::Out, 4_990),
        ] {
            waiting.push(sighting);
        }
        waiting.looked(0, TscCycles(6_000));
        assert_eq!(given(&mut waiting, 5_021), [(1_000, 10), (4_990, 10)]);
        assert_eq!(given(&mut waiting, 5_021), []);
        assert_eq!(given(&mut waiting, 5_022), [(5_000, 10)]);
    }

    #[test]
    fn a_reply_is_behind_its_request_within_their_errors() {
        for asking in [Direction::Out, Direction::In] {
            let mut waiting = waiting();
            waiting.asking = asking;
            let answering = match asking {
                Direction::Out => Direction::In,
                Direction::In => Direction::Out,
            };
            waiting.push(seen(answering, 1_000));
            waiting.push(seen(asking, 1_040));
            waiting.push(seen(answering, 1_500));
            waiting.looked(0, TscCycles(2_000));
            let order = given(&mut waiting, 9_000);
            assert_eq!(order, [(1_040, 10), (1_000, 10), (1_500, 10)]);
        }
    }

    #[test]
    fn what_was_stamped_since_the_look_before_is_off_by_what_moved() {
        let mut waiting = waiting();
        waiting.push(seen(Direction::Out, 1_000));
        assert!(waiting.is_unknown());
        waiting.looked(0, TscCycles(2_000));
        assert!(!waiting.is_unknown());
        waiting.push(seen(Direction::In, 3_000));
        waiting.looked(700, TscCycles(4_000));
        assert_eq!(given(&mut waiting, 9_000), [(1_000, 10), (3_000, 710)]);
    }

    /// They have their stamps by offsets of after, and may have been stamped before.
    #[test]
    fn what_was_in_a_ring_when_offsets_moved_is_off_by_as_much() {
        let mut waiting = waiting();
        waiting.looked(700, TscCycles(4_000));
        waiting.looked(300, TscCycles(5_000));
        // Until 5,000 and 1,000 ns.
        for tsc in [4_500, 7_001, 7_002] {
            waiting.push(seen(Direction::Out, tsc));
        }
        waiting.taken_out();
        waiting.looked(0, TscCycles(8_000));
        let errors = [(4_500, 1_010), (7_001, 1_010), (7_002, 10)];
        assert_eq!(given(&mut waiting, 9_000), errors);
        // They are all taken out by now.
        waiting.looked(50, TscCycles(9_000));
        for tsc in [9_101, 9_102] {
            waiting.push(seen(Direction::Out, tsc));
        }
        waiting.taken_out();
        waiting.looked(0, TscCycles(9_500));
        assert_eq!(given(&mut waiting, 10_000), [(9_101, 60), (9_102, 10)]);
    }
}
