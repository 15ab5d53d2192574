//! CLOCK_MONOTONIC_RAW: the kernel's clock as its counter alone drives it.
//!
//! No daemon slews or steps it: while the kernel counts by the TSC it is a fixed
//! multiple of that (`tkr_raw.mult`, kernel/time/timekeeping.c, which is never
//! adjusted). So it tells nothing of the time, but how the host's own clock is being
//! slewed: that clock's rate is p̂, and p̂ less the rate of this one is the correction
//! in force. What adjtimex says is the same, unless an offset is being slewed out or
//! p̂ is wrong.

use nix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::cross::now;
use super::{Bracket, CounterClock, CounterReport, RealNs};
use crate::sys::tsc;

/// The rate of CLOCK_MONOTONIC_RAW, from readings in order of time.
#[derive(Clone, Debug, Default)]
pub struct RawClock {
    first: Option<Bracket>,
    clock: Option<CounterClock>,
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
        let Some(first) = &self.first else {
            self.first = Some(*bracket);
            return;
        };
        match &mut self.clock {
            Some(clock) => {
                clock.observe(bracket, false);
            }
            None => {
                self.clock = CounterClock::new(first, bracket);
                let width = |bracket: &Bracket| bracket.tsc[1].0.saturating_sub(bracket.tsc[0].0);
                if self.clock.is_none() && width(bracket) < width(first) / 2 {
                    self.first = Some(*bracket);
                }
            }
        }
    }

    /// How a clock with this p̂ is slewed; `None` before there are two readings far
    /// enough apart.
    pub fn slew(&self, host: &CounterReport, kernel_ppb: Option<i64>) -> Option<Slew> {
        let clock = self.clock.as_ref()?;
        let counts = clock.model().counts();
        Some(Slew {
            ppb: host.ns_per_cycle_2_58.ppb_from(clock.rate()),
            bound_ppb: host.rate_bound_ppb + clock.rate_bound_ppb() + 1,
            kernel_ppb,
            breaks: counts.jumps + counts.bends,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::scripted::Host;
    use crate::clock::{StampSource, Tracker, TscCycles};

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
            assert_eq!((slew.kernel_ppb, slew.breaks), (Some(11_300), 0));
            before = slew.bound_ppb;
        }
        assert!(before < 30);
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

    #[test]
    fn this_hosts_raw_clock_never_goes_back() {
        let (first, second) = (Bracket::of_raw(), Bracket::of_raw());
        assert!(first.real[0] <= second.real[0]);
        assert!(first.tsc[0] < first.tsc[1] && first.tsc[1] < second.tsc[0]);
    }
}
