//! The feed-forward clock (Ridoux, Veitch, Broomhead: The Case for Feed-Forward
//! Clock Synchronization; the algorithms after RADclock, see [`Scale`]).
//!
//! `C(N) = p̂·N + K` is the uncorrected clock: p̂ comes from a far and a near reading
//! of the reference, never from corrections, and K keeps C continuous when p̂
//! changes. The absolute clock is `Ca = C − θ̂`, with θ̂ from the best recent
//! readings, each carried by the local rate, and never outside of what every reading
//! allows. The difference clock is `p̂·ΔN`. Nothing of what comes out goes back in.

mod floor;
mod pair;
mod scale;
mod stretch;
mod window;

use floor::{Change, Floor};
use pair::Pair;
use serde::{Deserialize, Serialize};
use stretch::{LocalRate, Stretch};
use window::Window;

use super::ns_per_cycle::FixedPointNs;
use super::reading::{Interval, Reading};
use super::{Bracket, NsPerCycle, RealNs, TscCycles};

pub use scale::Scale;

/// What became of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was used.
    Used,
    /// The counter or the reference went backwards in it, or the counter stands.
    Torn,
    /// It contradicts the clock more than a slew could, and is not believed yet.
    Implausible,
    /// The clock begins anew with it: reference or counter jumped.
    Jumped {
        /// By how much the reference was ahead of the clock, ns.
        by_ns: i64,
    },
}

/// How many readings came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Used.
    pub used: u64,
    /// Rejected: counter or reference went backwards or was set in it, or the counter
    /// stood.
    pub torn: u64,
    /// Rejected: contradicted the clock, and was not confirmed by the next ones.
    pub implausible: u64,
    /// Of those used: off the straight line of the ones before, as when a slew of the
    /// reference begins or ends.
    pub bends: u64,
    /// The clock began anew: the reference was set, or the counter jumped.
    pub jumps: u64,
    /// The least width rose for good.
    pub level_shifts: u64,
}

/// A reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The reference's time.
    pub real: RealNs,
    /// Greatest error against the reference, ns, as long as its rate wanders by no more
    /// than its [`Scale`] says; it grows with the age of the last reading.
    pub bound_ns: u64,
}

/// The feed-forward clock of a counter.
#[derive(Clone, Debug)]
pub struct FeedForward {
    scale: Scale,
    pair: Pair,
    /// K of C(N) = p̂·N + K.
    constant: FixedPointNs,
    floor: Floor,
    window: Window,
    stretch: Stretch,
    /// The rate since the reference last changed its own.
    local: LocalRate,
    /// The rate by which the absolute clock goes on: over a network the recent one, else the
    /// local rate.
    carrying: NsPerCycle,
    /// The reading at which it was seen last that the reference had changed its rate, or
    /// the first one.
    bent_at: TscCycles,
    /// Latest reading that was used.
    at: TscCycles,
    absolute: FixedPointNs,
    /// What all readings allow there.
    allowed: Interval,
    /// Readings in a row that were not believed.
    suspects: u32,
    /// The counter jumped at the latest reading: it may be another machine's since.
    is_rate_unknown: bool,
    counts: Counts,
}

impl FeedForward {
    /// Begins with two readings; `None` if they give no rate.
    pub fn new(scale: Scale, first: &Bracket, second: &Bracket) -> Option<Self> {
        let [(from, start), (until, end)] = [first.middle()?, second.middle()?];
        let rate = NsPerCycle::of(end.checked_sub(start)?, until.checked_sub(from)?)?;
        let readings = [Reading::new(first, rate)?, Reading::new(second, rate)?];
        let [far, near] = Reading::of_first_rate(readings)?;
        let mut pair = Pair::new(far, rate, scale);
        let least = far.width().min(near.width());
        if !pair.take(near, near.width() - least) {
            return None;
        }
        pair.worsen(far.width() - least);
        let start = FixedPointNs::from_ns(i128::from(far.middle()));
        let mut clock = Self {
            scale,
            pair,
            constant: start.minus(rate.span(far.at.0)),
            floor: Floor::new(scale, far.at, least),
            window: Window::new(scale),
            stretch: Stretch::new(far, &pair, false),
            local: LocalRate::average(&pair),
            carrying: rate,
            bent_at: far.at,
            at: far.at,
            absolute: start,
            allowed: far.interval(),
            suspects: 0,
            is_rate_unknown: false,
            counts: Counts {
                used: 1,
                ..Counts::default()
            },
        };
        clock.retune(rate, far.at);
        clock.window.take(far, far.width() - least, rate);
        matches!(clock.observe(second), Verdict::Used).then_some(clock)
    }

    /// Takes in one more reading. They must come in order of time.
    pub fn observe(&mut self, bracket: &Bracket) -> Verdict {
        let rate = self.pair.rate;
        let Some(reading) = Reading::new(bracket, rate) else {
            self.counts.torn += 1;
            return Verdict::Torn;
        };
        let Some(cycles) = reading.at.0.checked_sub(self.at.0) else {
            return self.unbelievable(reading);
        };
        if cycles == 0 {
            self.counts.torn += 1;
            return Verdict::Torn;
        }
        let seen = reading.interval();
        let average = LocalRate::average(&self.pair);
        let mut stretch = self.stretch;
        let straight = stretch.take(&reading, average);
        let faster = straight.filter(|local| !self.may_be_slewed(*local));
        if let Some(faster) = faster {
            return self.unbelievable_rate(reading, faster);
        }
        let local = straight.unwrap_or(average);
        let carried = self.allowed.carried(cycles, local.rate, local.drift_ppb);
        let both = carried.meet(seen);
        if straight.is_none() || both.is_none() {
            let off = carried.gap_to(seen);
            let farthest = rate.span(cycles).ppb(self.scale.fastest_ppm * 1000);
            if off.0.abs() > farthest.0 || self.suspects < self.scale.slew_confirmations {
                return self.unbelievable(reading);
            }
            self.window
                .retain_consistent(seen, reading.at, local.rate, local.drift_ppb);
            self.bent_at = reading.at;
        }
        if straight.is_none() {
            self.counts.bends += 1;
            stretch = self.stretch_from(reading);
        }
        self.allowed = both.unwrap_or(seen);
        self.stretch = stretch;
        self.local = local;
        self.suspects = 0;
        self.is_rate_unknown = false;
        self.counts.used += 1;
        self.use_reading(reading, cycles);
        Verdict::Used
    }

    fn use_reading(&mut self, reading: Reading, cycles: u64) {
        let before = self.pair.rate;
        match self.floor.take(reading.at, reading.width(), before) {
            Change::None => {}
            Change::Fell(by_ns) => {
                self.window.worsen(by_ns);
                self.pair.worsen(by_ns);
            }
            Change::Rose => self.counts.level_shifts += 1,
        }
        let error_ns = self.floor.point_error(reading.width());
        if self.pair.take(reading, error_ns) {
            self.retune(before, reading.at);
        }
        let local = self.local.rate;
        let fitted = if self.window.take(reading, error_ns, local) {
            self.window.fit(reading.at, local)
        } else {
            None
        };
        let time = match fitted {
            Some(fitted) => {
                self.carrying = fitted.rate;
                fitted.time
            }
            None => {
                self.carrying = self.rate_of_late();
                self.absolute.plus(self.carrying.span(cycles))
            }
        };
        self.absolute = self.allowed.nearest(time);
        self.at = reading.at;
    }

    /// The recent rate as before, as far as the local rate allows.
    fn rate_of_late(&self) -> NsPerCycle {
        let local = self.local.rate.0;
        let wander_ppb = self.scale.usual_wander_ppb().map_or(0, |usual| 2 * usual);
        let most = local / 1_000_000_000 * wander_ppb;
        NsPerCycle(self.carrying.0.clamp(local - most, local + most))
    }

    /// A new stretch. How far the kernel's clock bends shows at the next reading, and a
    /// capture's bound takes that in then; elsewhere the bound must have it at once.
    fn stretch_from(&self, first: Reading) -> Stretch {
        let is_bent = self.counts.bends > 0 && !self.scale.is_kernels;
        Stretch::new(first, &self.pair, is_bent)
    }

    /// Chooses K so that C is where it was at `at` with the period `before`.
    fn retune(&mut self, before: NsPerCycle, at: TscCycles) {
        let was = before.span(at.0);
        let is = self.pair.rate.span(at.0);
        self.constant = self.constant.plus(was.minus(is));
    }

    /// A reading that a slew can't explain: the clock begins anew with it once
    /// enough in a row have said so.
    fn unbelievable(&mut self, reading: Reading) -> Verdict {
        if self.suspects < self.scale.confirmations {
            self.suspects += 1;
            self.counts.implausible += 1;
            return Verdict::Implausible;
        }
        let expected = i128::from(self.estimate(reading.at).real.0);
        let ahead = i128::from(reading.middle()) - expected;
        // Whoever is certain of the reference tells when it is set.
        let is_certain = self.scale.confirmations == 0;
        self.begin_anew(reading, is_certain || reading.at < self.at);
        Verdict::Jumped {
            by_ns: i64::try_from(ahead).unwrap_or(i64::MAX),
        }
    }

    /// Whether the reference can have been slewed to that rate; where readings come over a network,
    /// others tell. Two readings have some rate, also if the counter jumped or the reference was set
    /// between them.
    fn may_be_slewed(&self, local: LocalRate) -> bool {
        let off_ppb = local.rate.ppb_from(self.pair.rate).unsigned_abs();
        let known_ppb = local.drift_ppb.saturating_add(self.pair.bound_ppb);
        let fastest_ppb = self.scale.fastest_ppm * 1_000;
        self.scale.slew_confirmations > 0 || off_ppb <= fastest_ppb.saturating_add(known_ppb)
    }

    /// A reading that a slew can't explain, though the readings before give no reason against
    /// its rate. Of another machine's counter it may be the rate: if so, the next one agrees.
    fn unbelievable_rate(&mut self, reading: Reading, found: LocalRate) -> Verdict {
        if !self.is_rate_unknown {
            return self.unbelievable(reading);
        }
        let verdict = self.unbelievable(reading);
        let before = std::mem::replace(&mut self.pair.rate, found.rate);
        self.retune(before, reading.at);
        self.pair.bound_ppb = self.pair.bound_ppb.max(found.drift_ppb);
        self.stretch = self.stretch_from(reading);
        self.local = LocalRate::average(&self.pair);
        self.carrying = self.local.rate;
        verdict
    }

    /// Begins anew at a reading, the first after the reference was set: p̂ is kept; where the
    /// counter `jumped` too, it may run at another rate. Says whether the reading was of use.
    pub fn restart(&mut self, bracket: &Bracket, jumped: bool) -> bool {
        let Some(reading) = Reading::new(bracket, self.pair.rate) else {
            self.counts.torn += 1;
            return false;
        };
        self.begin_anew(reading, jumped || reading.at < self.at);
        true
    }

    /// C goes on from here as it was.
    fn begin_anew(&mut self, reading: Reading, of_counter: bool) {
        self.counts.jumps += 1;
        self.counts.used += 1;
        self.suspects = 0;
        self.is_rate_unknown = of_counter;
        self.pair.restart(reading, of_counter);
        let error_ns = self.floor.point_error(reading.width());
        self.window = Window::new(self.scale);
        self.window.take(reading, error_ns, self.pair.rate);
        self.stretch = self.stretch_from(reading);
        self.local = LocalRate::average(&self.pair);
        self.carrying = self.local.rate;
        // What its rate did meanwhile is not known.
        self.bent_at = reading.at;
        self.allowed = reading.interval();
        self.absolute = FixedPointNs::from_ns(i128::from(reading.middle()));
        self.at = reading.at;
    }

    /// The absolute clock Ca at a counter value, with its bound.
    pub fn estimate(&self, at: TscCycles) -> Estimate {
        let LocalRate { rate, drift_ppb } = self.local;
        let (time, interval) = if at >= self.at {
            let cycles = at.0 - self.at.0;
            let interval = self.allowed.carried(cycles, rate, drift_ppb);
            (self.absolute.plus(self.carrying.span(cycles)), interval)
        } else {
            let span = rate.span(self.at.0 - at.0);
            let slack = span.ppb(drift_ppb);
            let interval = Interval {
                low: self.allowed.low.minus(span).minus(slack),
                high: self.allowed.high.minus(span).plus(slack),
            };
            (
                self.absolute.minus(self.carrying.span(self.at.0 - at.0)),
                interval,
            )
        };
        Estimate {
            real: real(time),
            bound_ns: interval.farther_ns(time),
        }
    }

    /// The uncorrected clock C at a counter value: continuous, whatever happens to
    /// the reference.
    pub fn uncorrected(&self, at: TscCycles) -> RealNs {
        real(self.pair.rate.span(at.0).plus(self.constant))
    }

    /// θ̂ at the latest reading, ns: how far C is ahead of the reference.
    pub fn offset_ns(&self) -> i64 {
        let ahead = i128::from(self.uncorrected(self.at).0) - self.absolute.ns();
        i64::try_from(ahead).unwrap_or(i64::MAX)
    }

    /// The rate since the reference last changed its own: p̂ if that is possible.
    pub fn local_rate(&self) -> NsPerCycle {
        self.local.rate
    }

    /// For how long the reference has run straight until the latest reading, ns.
    pub(super) fn straight_ns(&self) -> u64 {
        self.pair.rate.duration_ns(self.at.0 - self.bent_at.0)
    }

    /// The counter at the latest reading that was used.
    pub fn latest(&self) -> TscCycles {
        self.at
    }

    /// p̂.
    pub fn rate(&self) -> NsPerCycle {
        self.pair.rate
    }

    /// Greatest relative error of p̂ as an average over its baseline, parts per
    /// billion; over a network, as one over some baseline.
    pub fn rate_bound_ppb(&self) -> u64 {
        self.pair.bound_ppb
    }

    /// Least width of a reading, ns.
    pub fn least_width_ns(&self) -> u64 {
        self.floor.least()
    }

    /// What became of the readings.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Outside of 1970..2554, which no clock shows, the nearest end.
fn real(time: FixedPointNs) -> RealNs {
    RealNs(u64::try_from(time.ns().max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
