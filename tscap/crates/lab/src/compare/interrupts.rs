//! What turning interrupts off around a stamp costs, and what it keeps out.

use super::assemble::{READ_QUANTUM_NS, less, summary_less};
use super::schema::{InterruptMode, InterruptsOff};
use super::stamp_samples::StampSamples;
use super::statistics::{Allowance, ratio};
use tscap_statistics::Summary;

/// No stamp takes so long by itself, ns.
const HELD_UP_NS: i64 = 1_000;

/// Each of `off` beside the same stamp among `on`; `own` is the checkpoint's cost, and the
/// quantum of `allowance` that of a p99.
pub(super) fn beside(
    on: &[StampSamples],
    off: &[StampSamples],
    own: &Summary,
    allowance: Allowance,
) -> Vec<InterruptsOff> {
    let pairs = off.iter().filter_map(|off| {
        let stamp = off.turn.stamp;
        Some((on.iter().find(|on| on.turn.stamp == stamp)?, off))
    });
    pairs
        .filter_map(|(on, off)| both_ways(on, off, own, allowance))
        .collect()
}

fn both_ways(
    on: &StampSamples,
    off: &StampSamples,
    own: &Summary,
    allowance: Allowance,
) -> Option<InterruptsOff> {
    let path = off.turn.stamp?;
    let p99 = |costs: &[i64]| Some(Summary::of(less(costs, own))?.p99? as f64);
    let rounds = on.rounds().zip(off.rounds());
    let (p99_on, p99_off) = rounds.filter_map(|(on, off)| p99(on).zip(p99(off))).unzip();
    let (on, off) = (way(on, p99_on, own)?, way(off, p99_off, own)?);
    let read = Allowance {
        quantum_ns: READ_QUANTUM_NS,
        ..allowance
    };
    Some(InterruptsOff {
        source: path.source(),
        path: path.function().into(),
        read: ratio(&off.read_ns, &on.read_ns, read),
        p99: ratio(&off.p99_ns, &on.p99_ns, allowance),
        on,
        off,
    })
}

fn way(taken: &StampSamples, p99_ns: Vec<f64>, own: &Summary) -> Option<InterruptMode> {
    let costs = less(&taken.costs, own);
    let held_up = costs.iter().filter(|cost| **cost >= HELD_UP_NS);
    Some(InterruptMode {
        read_ns: taken.read_ns.clone(),
        p99_ns,
        over_1_us: held_up.count() as u64,
        all: summary_less(&costs, own)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::RoundItem;
    use crate::compare::schema::Outcome;
    use tscap_clock::StampPath;

    /// Five rounds of 30 ns, with the 50 slowest frames of each at `tail` ns.
    fn taken(interrupts_off: bool, frames: usize, tail: u64) -> StampSamples {
        let mut taken = StampSamples::new(RoundItem {
            stamp: Some(StampPath::Ktime),
            interrupts_off,
        });
        for round in 0..5 {
            let slow = (0..50).map(|_| tail + round);
            taken.round(slow.chain((50..frames).map(|_| 40)));
            taken.read_ns.push(if interrupts_off { 36.0 } else { 30.0 });
        }
        taken
    }

    fn own() -> Summary {
        Summary::of([10; 3]).unwrap()
    }

    #[test]
    fn a_shorter_tail_and_a_dearer_read_are_seen() {
        let on = [StampSamples::new(None), taken(false, 2_000, 1_009)];
        let found = beside(&on, &[taken(true, 2_000, 500)], &own(), Allowance::NONE);
        let [found] = &found[..] else {
            panic!("one stamp: {found:?}")
        };
        assert_eq!(found.path, "bpf_ktime_get_ns");
        assert_eq!(found.on.p99_ns, [999.0, 1_000.0, 1_001.0, 1_002.0, 1_003.0]);
        assert_eq!(found.off.p99_ns, [490.0, 491.0, 492.0, 493.0, 494.0]);
        assert_eq!((found.on.over_1_us, found.off.over_1_us), (200, 0));
        assert_eq!((found.on.all.n, found.on.all.min), (10_000, 30));
        assert_eq!(found.p99.outcome, Outcome::Cheaper);
        assert!((found.read.ratio.unwrap() - 1.2).abs() < 1e-9);
        assert_eq!(found.read.outcome, Outcome::Dearer);
    }

    #[test]
    fn without_ten_frames_beyond_it_there_is_no_p99() {
        let on = [taken(false, 999, 500)];
        let found = beside(&on, &[taken(true, 2_000, 500)], &own(), Allowance::NONE);
        assert!(found[0].on.p99_ns.is_empty() && found[0].off.p99_ns.is_empty());
        assert_eq!(found[0].p99.outcome, Outcome::Undecided);
        assert_eq!(found[0].p99.ratio, None);
    }

    #[test]
    fn nothing_asked_for_is_nothing() {
        assert_eq!(
            beside(&[taken(false, 2_000, 500)], &[], &own(), Allowance::NONE),
            []
        );
    }
}
