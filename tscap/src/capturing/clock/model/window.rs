//! The readings that the absolute clock is made of, weighted by point error and age.

use super::scale::{AGEING_PPB, Scale};
use crate::capturing::clock::ns_per_cycle::FixedPointNs;
use crate::capturing::clock::reading::{Interval, Reading};
use crate::capturing::clock::{NsPerCycle, TscCycles};

/// Readings kept: the best ones. Their mean has an eighth of the noise of one.
const MOST: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    reading: Reading,
    /// Point error when it was taken in, ns.
    error_ns: u64,
}

/// The best readings of late.
#[derive(Clone, Debug)]
pub(super) struct Window {
    entries: Vec<Entry>,
    /// Which is the worst, once there are enough; age changes nothing about that.
    worst: usize,
    scale: Scale,
}

impl Window {
    pub fn new(scale: Scale) -> Self {
        Self {
            entries: Vec::with_capacity(MOST),
            worst: 0,
            scale,
        }
    }

    /// Takes in a reading; once there are enough, only one that is better than the
    /// worst, by a part of the noise so that not all that are alike come in. Says
    /// whether it was.
    pub fn take(&mut self, reading: Reading, error_ns: u64, rate: NsPerCycle) -> bool {
        let entry = Entry { reading, error_ns };
        let aged = |entry: &Entry| aged_ps(entry, reading.at, rate);
        if self.entries.len() < MOST {
            self.entries.push(entry);
        } else {
            let worst = &mut self.entries[self.worst];
            if aged(&entry) + self.scale.noise_ns * 1000 / 8 >= aged(worst) {
                return false;
            }
            *worst = entry;
        }
        let lifetime_ns = self.scale.lifetime_ns();
        self.entries
            .retain(|entry| age_ns(entry, reading.at, rate) <= lifetime_ns);
        let by_badness = self.entries.iter().map(aged).enumerate();
        let worst = by_badness.max_by_key(|(_, aged)| *aged);
        self.worst = worst.map_or(0, |(index, _)| index);
        true
    }

    /// Leaves out what can't be true if `seen` is, at `at`.
    pub fn keep_what_meets(
        &mut self,
        seen: Interval,
        at: TscCycles,
        rate: NsPerCycle,
        drift_ppb: u64,
    ) {
        self.entries.retain(|entry| {
            let cycles = at.0.saturating_sub(entry.reading.at.0);
            let carried = entry.reading.interval().carried(cycles, rate, drift_ppb);
            carried.meet(seen).is_some()
        });
    }

    /// All readings so far were this much worse than they were taken for, ns.
    pub fn worsen(&mut self, by_ns: u64) {
        for entry in &mut self.entries {
            entry.error_ns += by_ns;
        }
    }

    /// The reference at `at`: each reading carried there by p̂, weighted by
    /// exp(−(E/quality)²) of its point error aged (RADclock's weight), here
    /// relative to the best so that a time of bad readings goes by its best ones.
    pub fn mean(&self, at: TscCycles, rate: NsPerCycle) -> Option<FixedPointNs> {
        let base = self.entries.last()?;
        let carry = |entry: &Entry| {
            let reading = &entry.reading;
            let interval = reading.interval();
            let twice = FixedPointNs(interval.low.0 + interval.high.0);
            let cycles = at.0.saturating_sub(reading.at.0);
            FixedPointNs(twice.0 / 2).plus(rate.span(cycles))
        };
        let origin = carry(base);
        let error = |entry: &Entry| {
            let aged = aged_ps(entry, at, rate) as f64 / 1000.0;
            (aged / self.scale.quality_ns() as f64).powi(2)
        };
        let best = self.entries.iter().map(error).fold(f64::INFINITY, f64::min);
        let (mut sum, mut weights) = (0.0, 0.0);
        for entry in &self.entries {
            let weight = (best - error(entry)).exp();
            sum += weight * carry(entry).minus(origin).as_f64();
            weights += weight;
        }
        // A span of nanoseconds to milliseconds: a float has digits to spare.
        let milli = (sum / weights * 1024.0).round() as i128;
        Some(origin.plus(FixedPointNs(FixedPointNs::from_ns(milli).0 >> 10)))
    }
}

fn age_ns(entry: &Entry, at: TscCycles, rate: NsPerCycle) -> u64 {
    rate.duration_ns(at.0.saturating_sub(entry.reading.at.0))
}

/// Point error with age, thousandths of a nanosecond.
fn aged_ps(entry: &Entry, at: TscCycles, rate: NsPerCycle) -> u64 {
    let age = age_ns(entry, at, rate) / (1_000_000 / AGEING_PPB);
    entry.error_ns.saturating_mul(1000).saturating_add(age)
}
