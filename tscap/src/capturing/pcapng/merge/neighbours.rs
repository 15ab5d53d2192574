//! Packets beside each other, of different files: whether the bounds of their times decide
//! which was first.

use serde::Serialize;

use super::super::reader::interval_ns;
use crate::capturing::clock::{CounterReport, FileNs, RawStamp};

/// What the times of an interface's packets are known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Greatest error of a time against the host's clock, ns.
    pub host_ns: u64,
    /// Greatest error of a raw stamp as such, ns.
    pub stamp_ns: u64,
    /// The counter of raw stamps, if one stamps.
    pub counter: Option<CounterReport>,
    /// The machine's boot, and the raw stamps' clock: the same number only for the same.
    pub boot: u32,
    pub clock: u32,
}

/// A packet in the copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// Index of its file.
    pub input: usize,
    pub time: FileNs,
    pub raw: Option<RawStamp>,
    /// `None` where the file states none.
    pub bounds: Option<Bounds>,
}

/// How many pairs of packets beside each other are of different files, and what decides
/// their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Neighbours {
    /// All of them.
    pub between_files: u64,
    /// Their times are no farther apart than the sum of their bounds. Raw stamps of one clock
    /// are compared instead, where both have kept theirs.
    pub undecided: u64,
    /// They stand in the order opposite to that of their raw stamps.
    pub against_raw: u64,
    /// The file of one of them states no bound.
    pub without_bounds: u64,
    /// They are of two machines, or of two boots: how far the clocks of these are apart is
    /// in no bound of a file.
    pub of_two_hosts: u64,
}

impl Neighbours {
    /// Takes in one pair.
    pub(super) fn count(&mut self, first: &Placed, second: &Placed) {
        self.between_files += 1;
        let Some((of_first, of_second)) = first.bounds.zip(second.bounds) else {
            self.without_bounds += 1;
            return;
        };
        self.of_two_hosts += u64::from(of_first.boot != of_second.boot);
        let is_one_clock = of_first.clock == of_second.clock;
        if let Some((from, to)) = first.raw.zip(second.raw).filter(|_| is_one_clock) {
            let apart = interval_ns(from, to, of_first.counter.as_ref());
            let bound = of_first.stamp_ns.saturating_add(of_second.stamp_ns);
            if apart.unsigned_abs() <= bound {
                self.undecided += 1;
            } else if apart < 0 {
                self.against_raw += 1;
            }
            return;
        }
        let apart = first.time.0.abs_diff(second.time.0);
        let bound = of_first.host_ns.saturating_add(of_second.host_ns);
        self.undecided += u64::from(apart <= bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(boot: u32, clock: u32) -> Option<Bounds> {
        Some(Bounds {
            host_ns: 10,
            stamp_ns: 2,
            counter: None,
            boot,
            clock,
        })
    }

    fn of(pairs: &[[Placed; 2]]) -> Neighbours {
        let mut neighbours = Neighbours::default();
        for [first, second] in pairs {
            neighbours.count(first, second);
        }
        neighbours
    }

    #[test]
    fn pairs_go_by_what_is_known_of_both() {
        let placed = |time, raw: Option<u64>, bounds| Placed {
            input: 0,
            time: FileNs(time),
            raw: raw.map(RawStamp),
            bounds,
        };
        let one = bounds(0, 0);
        let by_times = [100, 120, 121].map(|time| placed(time, None, one));
        let pairs = [[by_times[0], by_times[1]], [by_times[0], by_times[2]]];
        let found = of(&pairs);
        assert_eq!((found.between_files, found.undecided), (2, 1));

        // Raw stamps of one clock decide, also against the times.
        let with_raw = |raw, of| placed(100, Some(raw), of);
        let raw = of(&[
            [with_raw(50, one), with_raw(54, one)],
            [with_raw(50, one), with_raw(55, one)],
            [with_raw(51, one), with_raw(56, one)],
            [with_raw(55, one), with_raw(50, one)],
        ]);
        assert_eq!((raw.undecided, raw.against_raw), (1, 1));

        // Those of different clocks, or hosts, do not compare.
        let other_clock = of(&[[with_raw(50, one), with_raw(90, bounds(0, 1))]]);
        assert_eq!((other_clock.undecided, other_clock.of_two_hosts), (1, 0));
        let other_host = of(&[[with_raw(50, one), with_raw(90, bounds(1, 1))]]);
        assert_eq!((other_host.undecided, other_host.of_two_hosts), (1, 1));

        let foreign = of(&[[with_raw(50, one), placed(100, None, None)]]);
        assert_eq!((foreign.undecided, foreign.without_bounds), (0, 1));
    }
}
