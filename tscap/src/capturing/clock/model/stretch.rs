//! The local rate: how fast the reference has run since it last changed its rate.
//!
//! A time daemon slews the host's clock, which then runs straight, but not at p̂. What
//! rates a stretch of readings allows follows from the first of them and each other
//! one. As long as p̂ is among these it is used; else their middle.

use super::pair::Pair;
use crate::capturing::clock::NsPerCycle;
use crate::capturing::clock::reading::Reading;

/// A rate, and how far off it may be, parts per billion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalRate {
    pub rate: NsPerCycle,
    pub drift_ppb: u64,
}

impl LocalRate {
    /// By p̂.
    pub fn average(pair: &Pair) -> Self {
        Self {
            rate: pair.rate,
            drift_ppb: pair.bound_ppb.saturating_add(pair.wander_ppb),
        }
    }
}

/// Readings that lie on a straight line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    wander_ppb: u64,
    /// Whether p̂ is an average over several rates, so that nobody knows how far off it is
    /// but by this stretch.
    is_bent: bool,
    first: Reading,
    /// p̂ at its start: rates are told as parts of it.
    base: NsPerCycle,
    slowest: f64,
    fastest: f64,
}

impl Stretch {
    pub fn new(first: Reading, pair: &Pair, is_bent: bool) -> Self {
        Self {
            wander_ppb: pair.wander_ppb,
            is_bent,
            first,
            base: pair.rate,
            slowest: f64::NEG_INFINITY,
            fastest: f64::INFINITY,
        }
    }

    /// Takes in a later reading; `None` if no straight line goes through all: the
    /// reference has changed its rate.
    pub fn take(&mut self, reading: &Reading, average: LocalRate) -> Option<LocalRate> {
        let span = self.base.duration_ns(reading.at.0 - self.first.at.0);
        let per_ns = 1.0 / span.max(1) as f64;
        let from_base = |to: u64, from: u64| {
            let ns = to.wrapping_sub(from).wrapping_sub(span).cast_signed();
            ns as f64 * per_ns
        };
        self.slowest = self
            .slowest
            .max(from_base(reading.low, self.first.high.saturating_add(1)));
        self.fastest = self
            .fastest
            .min(from_base(reading.high.saturating_add(1), self.first.low));
        if self.slowest > self.fastest {
            return None;
        }
        let of_average = average.rate.0 as f64 / self.base.0 as f64 - 1.0;
        let slack = average.drift_ppb as f64 / 1e9;
        if self.slowest <= of_average + slack && of_average - slack <= self.fastest {
            let farthest = (of_average - self.slowest).max(self.fastest - of_average);
            let farthest_ppb = (farthest * 1e9).ceil() as u64;
            return Some(LocalRate {
                drift_ppb: match self.is_bent {
                    true => average
                        .drift_ppb
                        .max(farthest_ppb.saturating_add(self.wander_ppb)),
                    false => average.drift_ppb,
                },
                ..average
            });
        }
        let middle = (self.slowest + self.fastest) / 2.0;
        let half_ppb = ((self.fastest - self.slowest) / 2.0 * 1e9).ceil() as u64;
        Some(LocalRate {
            rate: NsPerCycle((self.base.0 as f64 * (1.0 + middle)) as u64),
            drift_ppb: half_ppb.saturating_add(self.wander_ppb),
        })
    }
}
