//! Packets beside each other, of different files: whether the bounds of their times decide
//! which was first.

use std::collections::HashMap;

use serde::Serialize;

use super::super::custom::{InterfaceOption, StatisticsOption};
use super::super::times_clock::{ClockRelation, TimesClock};
use tscap_clock::interval_ns;
use tscap_clock::{CounterReport, FileNs, RawStamp};

/// What the times of an interface's packets are known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Greatest error of a raw stamp as such, ns.
    pub stamp_ns: u64,
    /// The counter of raw stamps, if one stamps.
    pub counter: Option<CounterReport>,
    /// The clock of its times, among those of all files.
    pub clock: u32,
}

/// The clocks of all files.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    all: Vec<TimesClock>,
    /// Of those that packets beside each other are of, in their order.
    pairs: HashMap<(u32, u32), Pair>,
}

/// What two clocks say of each other.
#[derive(Clone, Copy, Debug)]
struct Pair {
    are_one: bool,
    has_raw_stamps: bool,
    /// Greatest error of the difference of a time of each, ns.
    apart_ns: Option<u64>,
}

impl Clocks {
    /// Takes in that of an interface, and gives its number. No two interfaces share one:
    /// whether their clocks are the same is what they say of each other.
    pub fn add(&mut self, of: &InterfaceOption, last: &StatisticsOption) -> u32 {
        let number = self.all.len();
        let mut clock = TimesClock::new(number, Some(of));
        clock.take(last);
        self.all.push(clock);
        u32::try_from(number).expect("no more than there are interfaces")
    }

    fn pair(&mut self, first: u32, second: u32) -> Pair {
        let all = &self.all;
        *self.pairs.entry((first, second)).or_insert_with(|| {
            let [first, second] = [first, second].map(|it| &all[it as usize]);
            Pair {
                are_one: first.kinship(second) == ClockRelation::Same,
                has_raw_stamps: first.has_raw_stamps_of(second),
                apart_ns: first.apart_ns(second),
            }
        })
    }
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
    /// Pairs of neighbours that are of different files.
    pub between_files: u64,
    /// Their times are no farther apart than the sum of their bounds: against the clock of
    /// both, or of two clocks against UTC; or one of two clocks has no such bound. Raw stamps of
    /// one clock are compared instead, where both have kept theirs.
    pub undecided: u64,
    /// They stand in the order opposite to that of their raw stamps.
    pub against_raw: u64,
    /// The file of one of them states no bound.
    pub without_bounds: u64,
    /// Their times are of two clocks: of two machines, of two boots, or of captures that follow
    /// a reference each by itself.
    pub of_two_hosts: u64,
}

impl Neighbours {
    /// Takes in one pair.
    pub(super) fn count(&mut self, first: &Placed, second: &Placed, clocks: &mut Clocks) {
        self.between_files += 1;
        let Some((of_first, of_second)) = first.bounds.zip(second.bounds) else {
            self.without_bounds += 1;
            return;
        };
        let pair = clocks.pair(of_first.clock, of_second.clock);
        self.of_two_hosts += u64::from(!pair.are_one);
        let is_one_clock = pair.has_raw_stamps;
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
        let is_decided = pair.apart_ns.is_some_and(|bound| apart > bound);
        self.undecided += u64::from(!is_decided);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::{Outcomes, StampOrder};
    use crate::pcapng::{ClockOption, Hooks, StampOption};
    use tscap_clock::{StampPath, TscPath};

    const TSC: StampPath = StampPath::Tsc(TscPath::Module);

    /// Its times are good to 10 ns, its raw stamps to 2 ns.
    fn add(
        clocks: &mut Clocks,
        boot: &str,
        path: StampPath,
        utc_ns: Option<u64>,
    ) -> Option<Bounds> {
        let stamp = StampOption::new(path);
        let mut option = InterfaceOption::new(Hooks::default(), stamp.clone(), Default::default());
        option.boot_id = Some(boot.into());
        let clock = ClockOption {
            stamp,
            counter: None,
            host_bound_ns: 10,
            stamp_error_ns: 2,
            utc_bound_ns: utc_ns,
            utc: None,
            reference: None,
            references: Vec::new(),
            order: StampOrder::default(),
            segments_left_out: 0,
            segments: Vec::new(),
            samples: Vec::new(),
        };
        let last = StatisticsOption::new(Outcomes::default(), clock, None);
        Some(Bounds {
            stamp_ns: 2,
            counter: None,
            clock: clocks.add(&option, &last),
        })
    }

    fn placed(time: u64, raw: Option<u64>, bounds: Option<Bounds>) -> Placed {
        Placed {
            input: 0,
            time: FileNs(time),
            raw: raw.map(RawStamp),
            bounds,
        }
    }

    fn of(clocks: &mut Clocks, pairs: &[[Placed; 2]]) -> Neighbours {
        let mut neighbours = Neighbours::default();
        for [first, second] in pairs {
            neighbours.count(first, second, clocks);
        }
        neighbours
    }

    #[test]
    fn pairs_go_by_what_is_known_of_both() {
        let clocks = &mut Clocks::default();
        let one = add(clocks, "here", TSC, None);
        let again = add(clocks, "here", TSC, None);
        let by_times = |time, of| placed(time, None, of);
        let pairs = [
            [by_times(100, one), by_times(120, again)],
            [by_times(100, one), by_times(121, again)],
        ];
        let found = of(clocks, &pairs);
        assert_eq!((found.between_files, found.undecided), (2, 1));
        assert_eq!(found.of_two_hosts, 0);

        // Raw stamps of one clock decide, also against the times.
        let with_raw = |raw, of| placed(100, Some(raw), of);
        let pairs = [
            [with_raw(50, one), with_raw(54, again)],
            [with_raw(50, one), with_raw(55, again)],
            [with_raw(51, one), with_raw(56, again)],
            [with_raw(55, one), with_raw(50, again)],
        ];
        let raw = of(clocks, &pairs);
        assert_eq!((raw.undecided, raw.against_raw), (1, 1));

        // Those of different clocks do not compare.
        let ktime = add(clocks, "here", StampPath::Ktime, None);
        let other_clock = of(clocks, &[[with_raw(50, one), with_raw(90, ktime)]]);
        assert_eq!((other_clock.undecided, other_clock.of_two_hosts), (1, 0));

        let foreign = of(clocks, &[[with_raw(50, one), placed(100, None, None)]]);
        assert_eq!((foreign.undecided, foreign.without_bounds), (0, 1));
    }

    #[test]
    fn pairs_of_two_hosts_go_by_both_bounds_to_utc() {
        let clocks = &mut Clocks::default();
        let here = add(clocks, "here", TSC, Some(1_000));
        let there = add(clocks, "there", TSC, Some(2_000));
        let adrift = add(clocks, "adrift", TSC, None);
        let beside = |apart, of| {
            [
                placed(100, Some(50), here),
                placed(100 + apart, Some(90), of),
            ]
        };
        for (apart, other, undecided) in [
            (3_020, there, 1),
            (3_021, there, 0),
            (3_021, adrift, 1),
            (u64::MAX - 100, adrift, 1),
        ] {
            let found = of(clocks, &[beside(apart, other)]);
            assert_eq!(
                (found.undecided, found.of_two_hosts),
                (undecided, 1),
                "{apart}"
            );
        }
    }
}
