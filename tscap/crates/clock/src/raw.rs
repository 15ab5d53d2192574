//! CLOCK_MONOTONIC_RAW: the kernel's clock as its counter alone drives it.
//!
//! No daemon slews or steps it: while the kernel counts by the TSC it is a fixed
//! multiple of that (`tkr_raw.mult`, kernel/time/timekeeping.c, which is never
//! adjusted). So it tells nothing of the time, but how the host's own clock is being
//! slewed: that clock's rate is p̂, and p̂ less the rate of this one is the correction
//! in force. What adjtimex says is the same, unless an offset is being slewed out or
//! p̂ is wrong.

use std::cmp::Ordering;

use nix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::{Bracket, CounterReport, NsPerCycle, RealNs};
use tscap_time::now;
use tscap_time::tsc;

/// The rate of CLOCK_MONOTONIC_RAW, from readings in order of time. It changes with the counter
/// alone: of readings that contradict it the counter jumped between two.
#[derive(Clone, Debug, Default)]
pub struct RawClock {
    run: Run,
    /// By the runs before.
    before: Option<Allowed>,
    breaks: u64,
}

/// Readings that one rate allows.
#[derive(Clone, Debug, Default)]
struct Run {
    /// The first ones, which every later one is held against: some of them are narrow.
    anchors: Vec<Bracket>,
    allowed: Option<Allowed>,
}

/// Readings kept of a run.
const ANCHORS: usize = 8;

/// Rates that readings allow, in the units of [`NsPerCycle`], both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    low: u64,
    high: u64,
    /// Readings since the first that say so.
    readings: u64,
    /// Whether they are those of a counter that has run at several rates.
    has_changed: bool,
}

/// Three readings that one rate allows: no jump is between them.
const CONFIRMED: u64 = 2;
/// A counter of another machine has a rate within this part of the one before; what differs by
/// more has a jump in it.
const FARTHEST_RATE: u64 = 1_000;

impl Allowed {
    /// By two readings; `None` if the later one is not later by the counter.
    fn between(earlier: &Bracket, later: &Bracket) -> Option<Self> {
        let least = later.tsc[0].0.checked_sub(earlier.tsc[1].0)?;
        let most = later.tsc[1].0.checked_sub(earlier.tsc[0].0)?;
        let ns = later.real[0].0.checked_sub(earlier.real[0].0)?;
        // Readings are truncated to nanoseconds.
        let low = NsPerCycle::of(ns.saturating_sub(1), most)?;
        let high = NsPerCycle::of(ns + 1, least)?;
        Some(Self {
            low: low.0,
            high: high.0.saturating_add(1),
            readings: 1,
            has_changed: false,
        })
    }

    /// The rates that both allow.
    fn meet(self, other: Self) -> Option<Self> {
        let both = Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            ..self
        };
        (both.low <= both.high).then_some(both)
    }

    /// By two runs between which the counter jumped. If they contradict each other, and three
    /// readings agree on either, it runs at another rate since. Else it jumped between the first
    /// two readings of one, where nothing contradicts: that is the shorter one.
    fn join(self, other: Self) -> Self {
        let readings = self.readings + other.readings;
        let both = self.meet(other).filter(|_| !self.has_changed);
        if let Some(both) = both {
            return Self { readings, ..both };
        }
        if self.readings.min(other.readings) >= CONFIRMED {
            return Self {
                readings,
                has_changed: true,
                ..self.either(other)
            };
        }
        match self.readings.cmp(&other.readings) {
            Ordering::Greater => self,
            Ordering::Less => other,
            Ordering::Equal => self.either(other),
        }
    }

    /// The rates that either allows, and those between.
    fn either(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            ..self
        }
    }

    /// By a run that may still be confirmed.
    fn join_latest(self, latest: Self) -> Self {
        let joined = self.join(latest);
        let farthest = self.low / FARTHEST_RATE;
        let is_near = latest.low.abs_diff(self.low) <= farthest;
        if latest.readings < CONFIRMED && self.meet(latest).is_none() && is_near {
            joined.either(latest)
        } else {
            joined
        }
    }

    fn rate(self) -> RawRate {
        let half = (self.high - self.low).div_ceil(2);
        let middle = self.low + half;
        let ppb = (u128::from(half) * 1_000_000_000).div_ceil(u128::from(self.low));
        RawRate {
            ns_per_cycle_2_58: NsPerCycle(middle),
            bound_ppb: u64::try_from(ppb).unwrap_or(u64::MAX),
        }
    }
}

impl Run {
    /// Takes in one more reading, unless it contradicts the ones before.
    fn take(&mut self, bracket: &Bracket) -> bool {
        let mut allowed = self.allowed;
        for anchor in &self.anchors {
            let Some(by_anchor) = Allowed::between(anchor, bracket) else {
                return false;
            };
            allowed = match allowed {
                None => Some(by_anchor),
                Some(allowed) => match allowed.meet(by_anchor) {
                    None => return false,
                    both => both,
                },
            };
        }
        if let Some(allowed) = &mut allowed {
            allowed.readings = self.allowed.map_or(0, |before| before.readings) + 1;
        }
        self.allowed = allowed;
        if self.anchors.len() < ANCHORS {
            self.anchors.push(*bracket);
        }
        true
    }
}

/// The rate of a counter by CLOCK_MONOTONIC_RAW.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRate {
    /// The rate; in files in units of 2^-58 ns a cycle.
    pub ns_per_cycle_2_58: NsPerCycle,
    /// Greatest relative error against CLOCK_MONOTONIC_RAW, parts per billion.
    pub bound_ppb: u64,
}

/// How the host's clock is slewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slew {
    /// How much faster than CLOCK_MONOTONIC_RAW the host's clock has run, parts per
    /// billion, over the time that p̂ is an average of.
    pub ppb: i64,
    /// Greatest error of that: those of both rates, and of rounding.
    pub bound_ppb: u64,
    /// What the kernel says its correction is now, parts per billion.
    pub kernel_ppb: Option<i64>,
    /// How often the counter and CLOCK_MONOTONIC_RAW parted, which they never do
    /// unless the counter jumped, went on in suspend, or the kernel counts by another one.
    pub breaks: u64,
}

impl Bracket {
    /// Reads CLOCK_MONOTONIC_RAW through the vDSO, between two readings of the TSC.
    pub fn of_raw() -> Self {
        let before = tsc::read();
        let raw = RealNs(now(ClockId::CLOCK_MONOTONIC_RAW));
        Self {
            tsc: [before, tsc::read()],
            real: [raw; 2],
        }
    }
}

impl RawClock {
    /// Takes in one more reading.
    pub fn observe(&mut self, bracket: &Bracket) {
        if bracket.tsc[1] < bracket.tsc[0] || self.run.take(bracket) {
            return;
        }
        self.breaks += 1;
        self.before = match (self.before, self.run.allowed) {
            (Some(before), Some(run)) => Some(before.join(run)),
            (before, run) => before.or(run),
        };
        self.run = Run::default();
        self.run.take(bracket);
    }

    /// Its rate; `None` before there are two readings.
    pub fn rate(&self) -> Option<RawRate> {
        self.allowed().map(Allowed::rate)
    }

    fn allowed(&self) -> Option<Allowed> {
        match (self.before, self.run.allowed) {
            (Some(before), Some(run)) => Some(before.join_latest(run)),
            (before, run) => before.or(run),
        }
    }

    /// How a clock with this p̂ is slewed; `None` before there are two readings.
    pub fn slew(&self, host: &CounterReport, kernel_ppb: Option<i64>) -> Option<Slew> {
        let raw = self.rate()?;
        Some(Slew {
            ppb: host.ns_per_cycle_2_58.ppb_from(raw.ns_per_cycle_2_58),
            bound_ppb: host.rate_bound_ppb + raw.bound_ppb + 1,
            kernel_ppb,
            breaks: self.breaks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Host;
    use crate::{StampSource, Tracker, TscCycles};

    const MS: u64 = 1_000_000;
    const GAPS: [u64; 3] = [20, 40, 20];

    /// A host whose clock is slewed by 12 ppm, and its unslewed one.
    fn run(ms: u64, jump: impl Fn(u64) -> u64) -> (Tracker, RawClock) {
        let host = |ppb| Host {
            hertz: 2_596_130_000,
            slews: vec![(0, ppb)],
        };
        let (slewed, free) = (host(12_000), host(700));
        let mut tracker = Tracker::new(StampSource::Tsc, &slewed.cross(0, GAPS)).unwrap();
        let mut raw = RawClock::default();
        for t in (0..=ms).step_by(10) {
            tracker.observe(&slewed.cross(t * MS, GAPS));
            let mut bracket = free.bracket(t * MS, GAPS);
            for tsc in &mut bracket.tsc {
                *tsc = TscCycles(tsc.0 + jump(t));
            }
            raw.observe(&bracket);
        }
        (tracker, raw)
    }

    #[test]
    fn the_slew_lies_within_its_bound_which_shrinks() {
        let mut before = u64::MAX;
        for ms in [100, 1_000, 10_000] {
            let (tracker, raw) = run(ms, |_| 0);
            let host = tracker.counter().unwrap().report();
            let slew = raw.slew(&host, Some(11_300)).unwrap();
            assert!(slew.ppb.abs_diff(11_300) <= slew.bound_ppb, "{slew:?}");
            assert!(slew.bound_ppb * 5 < before, "{slew:?}");
            let both = host.rate_bound_ppb + raw.rate().unwrap().bound_ppb;
            assert!(slew.bound_ppb > both, "the quotient is rounded: {slew:?}");
            assert_eq!((slew.kernel_ppb, slew.breaks), (Some(11_300), 0));
            before = slew.bound_ppb;
        }
        assert!(before < 30);
    }

    /// By 500 ppm over half of a minute: p̂ takes in half of that, the difference clock
    /// nothing.
    #[test]
    fn a_second_of_the_difference_clock_has_no_slew_in_it() {
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![(0, 0), (15_000 * MS, 500_000), (45_000 * MS, 0)],
        };
        let free = Host {
            slews: vec![],
            ..host.clone()
        };
        let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, GAPS)).unwrap();
        for t in (0..=60_000).step_by(100) {
            tracker.observe(&host.cross(t * MS, GAPS));
            tracker.observe_raw(&free.bracket(t * MS, GAPS));
        }
        let report = tracker.counter_report().unwrap();
        let second = |ns_per_cycle: NsPerCycle| ns_per_cycle.duration_ns(host.hertz);
        let average = second(report.ns_per_cycle_2_58);
        assert!(average.abs_diff(1_000_250_000) < 1_000, "{average}");
        let interval = second(report.interval_rate());
        let bound = report.raw.unwrap().bound_ppb;
        assert!(interval.abs_diff(1_000_000_000) <= bound, "{interval}");
        assert!(bound < 10, "{bound}");
    }

    #[test]
    fn nothing_is_said_before_it_is_known() {
        let (tracker, _) = run(1_000, |_| 0);
        let host = tracker.counter().unwrap().report();
        assert_eq!(RawClock::default().slew(&host, None), None);
    }

    #[test]
    fn a_counter_that_leaves_it_is_counted() {
        let jump = |ms| if ms < 2_000 { 0 } else { 9_000_000_000 };
        let (tracker, raw) = run(4_000, jump);
        let host = tracker.counter().unwrap().report();
        assert_eq!(raw.slew(&host, None).unwrap().breaks, 1);
    }

    /// One of 25 µs in a second looks like 25 ppm: the readings around it tell, wherever it
    /// is but before the second reading.
    #[test]
    fn a_jump_leaves_the_rate_what_it_was() {
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![],
        };
        let truth = NsPerCycle::of(1_000_000_000, host.hertz).unwrap();
        let rate_with_jump_in = |second: u64, seconds: u64| {
            let mut raw = RawClock::default();
            for now in 0..=seconds {
                let jump = if now > second { 65_000 } else { 0 };
                let mut bracket = host.bracket(now * 1_000 * MS, GAPS);
                bracket.tsc = bracket.tsc.map(|TscCycles(at)| TscCycles(at + jump));
                raw.observe(&bracket);
            }
            let RawRate {
                ns_per_cycle_2_58: rate,
                bound_ppb,
            } = raw.rate().unwrap();
            (rate.ppb_from(truth).unsigned_abs(), bound_ppb)
        };
        for second in 0..10 {
            let (off_ppb, bound_ppb) = rate_with_jump_in(second, 10);
            assert!(
                off_ppb <= bound_ppb && bound_ppb < 60,
                "{off_ppb} {bound_ppb}"
            );
        }
        // Nothing says which of the two seconds had it.
        let (off_ppb, bound_ppb) = rate_with_jump_in(0, 3);
        assert!(
            off_ppb <= bound_ppb && bound_ppb > 12_000,
            "{off_ppb} {bound_ppb}"
        );
    }

    /// Exactly, in the units that rates are rounded to: both readings are
    /// truncated, so that there may be nearly 1 ns less or more between them.
    #[test]
    fn two_readings_exclude_no_rate_that_there_can_have_been() {
        let bracket = |tsc: [u64; 2], ns| Bracket {
            tsc: tsc.map(TscCycles),
            real: [RealNs(ns); 2],
        };
        for cycles in 2_000..3_000 {
            let first = bracket([0, 30], 500);
            let second = bracket([cycles, cycles + 77], 1_500);
            let Allowed { low, high, .. } = Allowed::between(&first, &second).unwrap();
            let (least, most) = (u128::from(cycles - 30), u128::from(cycles + 77));
            assert!(
                u128::from(low) * most <= 999 * u128::from(NsPerCycle::ONE.0),
                "{cycles}"
            );
            assert!(
                u128::from(high) * least >= 1_001 * u128::from(NsPerCycle::ONE.0),
                "{cycles}"
            );
        }
    }

    /// The counter jumped twice. Two runs agree; the third one has a jump in it, or is of a
    /// counter that runs at another rate, as that of another machine does.
    #[test]
    fn runs_of_three_readings_that_contradict_each_other_have_both_rates() {
        let run = |low, readings| Allowed {
            low,
            high: low + 10,
            readings,
            has_changed: false,
        };
        let both = run(100, 3).join(run(105, 2));
        let rates = |it: Allowed| (it.low, it.high);
        assert_eq!(rates(both), (105, 110));
        assert_eq!(rates(both.join(run(900, 1))), (105, 110));
        let changed = both.join(run(900, 4));
        assert_eq!(rates(changed), (105, 910));
        // One of them again does not undo the other.
        assert_eq!(rates(changed.join(run(105, 50))), (105, 910));
        assert_eq!(rates(changed.join(run(40, 2))), (40, 910));
    }

    /// A virtual machine moves: 100 ppm faster from then on.
    #[test]
    fn a_counter_that_runs_at_another_rate_has_a_bound_that_holds_for_both() {
        let host = |hertz| Host {
            hertz,
            slews: vec![],
        };
        let (before, after) = (host(2_596_130_000), host(2_596_389_613));
        let mut raw = RawClock::default();
        for second in 0..20 {
            let of = if second < 12 { &before } else { &after };
            raw.observe(&of.bracket(second * 1_000 * MS, GAPS));
            let Some(rate) = raw.rate() else { continue };
            for (host, is_certain) in [(&before, second >= 1), (&after, second >= 13)] {
                let truth = NsPerCycle::of(1_000_000_000, host.hertz).unwrap();
                let off_ppb = rate.ns_per_cycle_2_58.ppb_from(truth).unsigned_abs();
                let holds = off_ppb <= rate.bound_ppb + 1;
                assert!(holds || !is_certain, "{off_ppb} {rate:?} at {second} s");
            }
        }
        assert!(raw.rate().unwrap().bound_ppb < 60_000);
    }

    #[test]
    fn a_reading_in_which_the_counter_went_back_says_nothing() {
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![],
        };
        let mut raw = RawClock::default();
        let at = |t| host.bracket(t * MS, [0; 3]);
        raw.observe(&at(0));
        let mut back = host.bracket(500 * MS, GAPS);
        back.tsc.reverse();
        raw.observe(&back);
        assert_eq!(raw.rate(), None);
        // One within the same nanosecond is as good as any.
        raw.observe(&at(1_000));
        assert!(raw.rate().is_some());
        assert_eq!(raw.breaks, 0);
    }

    #[test]
    fn this_hosts_raw_clock_never_goes_back() {
        let (first, second) = (Bracket::of_raw(), Bracket::of_raw());
        assert!(first.real[0] <= second.real[0]);
        assert!(first.tsc[0] <= first.tsc[1] && first.tsc[1] <= second.tsc[0]);
    }
}
