//! What a tracker knows, as a page for readers.

use tscap_clock::{CrossTimestamp, NsPerCycle, Observation, StepCause, Tracker, TscCycles};
use tscap_clock_reader::layout::{GROWTH_FRACTION, Latest, Page, UNKNOWN, state};

use crate::Utc;
use crate::past::{Knot, Past};

/// By how much the rate of CLOCK_REALTIME may change until the next reading, parts per billion:
/// from one limit of what `adjtimex` takes as a frequency to the other (MAXFREQ, linux/timex.h).
const SLEW_PPB: u64 = 1_000_000;
/// By how much a clock may run away from UTC while nobody corrects it, parts per billion: as the
/// kernel lets its own bound grow (`second_overflow`, kernel/time/ntp.c).
const UTC_PPB: u64 = 500_000;
/// Without a reading for so long a page is stale, ns.
const STALE_NS: i64 = 1_000_000_000;
/// Without a reading for so long a page is void, ns.
const VOID_NS: i64 = 1_000_000_000_000;

/// Makes a page of each reading.
#[derive(Clone, Debug, Default)]
pub struct Publisher {
    past: Past,
    /// The counter at the latest reading, of use or not.
    before: Option<TscCycles>,
    /// The counter at the latest reading of use.
    used: Option<TscCycles>,
    /// The greatest bound since that, ns.
    bound_ns: u64,
    /// What the clock did since that is not known.
    is_interrupted: bool,
    epoch_raw: u64,
    jumps: u64,
}

impl Publisher {
    /// Takes in what a tracker of TSC stamps made of a reading. `None` until the tracker has
    /// settled and knows the rate of CLOCK_MONOTONIC_RAW.
    pub fn observe(
        &mut self,
        tracker: &mut Tracker,
        cross: &CrossTimestamp,
        seen: Observation,
        utc: &Utc,
    ) -> Option<Page> {
        let [first, last] = cross.tsc?;
        let went_back = self.before.is_some_and(|before| first < before);
        let was_suspended = matches!(
            seen,
            Observation::Stepped {
                cause: StepCause::Suspend,
                ..
            }
        );
        if self.before.is_none() {
            self.epoch_raw = first.0;
        }
        self.before = Some(last);
        if went_back || was_suspended || seen.counter_jump_ns().is_some() {
            self.past.forget();
            self.is_interrupted = true;
            self.epoch_raw = first.0;
            self.jumps += 1;
        }
        self.bound_ns = self.bound_ns.max(tracker.take_recent_bound_ns());
        self.take_course(tracker, seen, utc);
        self.page(tracker, last, utc)
    }

    /// The latest reading of use, where the clock's line ends.
    fn take_course(&mut self, tracker: &Tracker, seen: Observation, utc: &Utc) -> Option<()> {
        let model = tracker.counter()?.model();
        let (at, rate) = (model.latest(), model.local_rate());
        let is_certain = seen == Observation::Agrees && tracker.is_resolved();
        let conversion = tracker.conversion();
        let ambiguous = conversion.perhaps_ambiguous().ends();
        let ambiguous = ambiguous.map(|[first, last]| [first.0, last.0]);
        let from = self.past.first_of_open().unwrap_or(at.0);
        let is_touched = ambiguous.is_some_and(|range| overlaps(range, [from, at.0]));
        if !is_certain || is_touched {
            self.past.interrupt(rate);
            self.is_interrupted = true;
        }
        match ambiguous {
            Some([first, last]) if first <= last => self.past.cut(first, last),
            Some(_) => self.past.forget(),
            None => {}
        }
        if self.used.replace(at) == Some(at) {
            return None;
        }
        let bound_ns = std::mem::take(&mut self.bound_ns);
        let is_inside = ambiguous.is_some_and(|range| overlaps(range, [at.0; 2]));
        if !tracker.is_resolved() || is_inside {
            return None;
        }
        if std::mem::take(&mut self.is_interrupted) {
            self.past.interrupt(rate);
        }
        // It may have grown until the reading, and was corrected then.
        let utc = Utc {
            bound_ns: utc
                .bound_ns
                .map(|bound| bound.saturating_add(UTC_PPB / 100)),
            ..*utc
        };
        let knot = Knot {
            raw: at.0,
            real_ns: conversion.to_real(tscap_clock::RawStamp(at.0)).0,
            bound_ns,
            utc,
        };
        self.past.extend(knot, rate);
        Some(())
    }

    fn page(&self, tracker: &Tracker, read_at: TscCycles, utc: &Utc) -> Option<Page> {
        let counter = tracker.counter()?;
        let model = counter.model();
        let difference = tracker.counter_report()?.raw?;
        let (at, rate) = (model.latest(), model.local_rate());
        let estimate = model.estimate(at);
        let real = tracker.conversion().to_real(tscap_clock::RawStamp(at.0));
        // Rounding at both ends, and for how long a coarse counter shows one value.
        let rounding_ns = 1 + rate.0.div_ceil(NsPerCycle::ONE.0);
        let drift_ppb = drift_ppb(model, rate);
        let skew_ppb = rate.ppb_from(model.rate()).unsigned_abs();
        let offset = tracker.current().mono_to_real;
        let is_exact = offset.low == offset.high;
        let state = match utc.bound_ns {
            _ if !tracker.is_resolved() || !is_exact => state::UNRESOLVED,
            None => state::UNSYNCHRONISED,
            Some(_) if utc.is_holdover => state::HOLDOVER,
            Some(_) => state::SYNCHRONISED,
        };
        let after = |ns: i64| {
            let cycles = rate.cycles_in(ns);
            read_at.0.saturating_add_signed(cycles)
        };
        let latest = Latest {
            raw: at.0,
            real_ns: real.0,
            rate: rate.0,
            host_bound_ns: estimate.bound_ns + estimate.real.0.abs_diff(real.0) + rounding_ns,
            host_growth: growth(SLEW_PPB + drift_ppb),
            utc_offset_ns: utc.offset_ns,
            utc_bound_ns: utc.bound_ns.unwrap_or(UNKNOWN),
            utc_growth: growth(UTC_PPB + drift_ppb + skew_ppb),
            mono_to_real_ns: offset.low,
            difference_rate: difference.ns_per_cycle_2_58.0,
            difference_bound_ppb: difference.bound_ppb,
            state,
            stale_raw: after(STALE_NS),
            void_raw: after(VOID_NS),
            epoch_raw: self.epoch_raw,
            jumps: self.jumps,
            steps: tracker.steps(),
            pieces: 0,
        };
        Some(Page {
            latest,
            past: self.past.pieces(rate),
        })
    }
}

/// How far off the rate may be, parts per billion, while CLOCK_REALTIME keeps its own.
fn drift_ppb(model: &tscap_clock::FeedForward, rate: NsPerCycle) -> u64 {
    let at = model.latest();
    let second = rate.cycles_in(1_000_000_000).unsigned_abs();
    let later = TscCycles(at.0.saturating_add(second));
    let [now, then] = [at, later].map(|at| model.estimate(at).bound_ns);
    then.saturating_sub(now)
}

/// Parts per billion as what bounds grow by.
fn growth(ppb: u64) -> u64 {
    let growth = (u128::from(ppb) << GROWTH_FRACTION).div_ceil(1_000_000_000);
    u64::try_from(growth).unwrap_or(u64::MAX)
}

/// Whether two ranges of values share one, both ends inclusive; the first may go over the greatest
/// value.
fn overlaps([first, last]: [u64; 2], [from, until]: [u64; 2]) -> bool {
    if first <= last {
        first <= until && from <= last
    } else {
        until >= first || from <= last
    }
}

#[cfg(test)]
mod tests;
