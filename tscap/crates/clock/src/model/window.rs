//! The readings that the absolute clock is made of, weighted by point error and age.

use super::scale::{AGEING_PPB, Scale};
use crate::ns_per_cycle::FixedPointNs;
use crate::reading::{Interval, Reading};
use crate::{NsPerCycle, TscCycles};

/// Readings kept: the best ones. Their mean has an eighth of the noise of one.
const MOST: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    reading: Reading,
    /// Point error when it was taken in, ns.
    error_ns: u64,
}

/// The best recent readings.
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
    pub fn retain_consistent(
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

    /// The reference at `at`: each reading carried there by `rate`, weighted by
    /// exp(−(E/quality)²) of its point error aged (RADclock's weight), here
    /// relative to the best so that a time of bad readings goes by its best ones.
    ///
    /// Over a network readings are so far apart that the counter has wandered since: how the
    /// rate was off meanwhile is fitted to them too (RADclock's local rate, which it takes
    /// from two of them).
    pub fn fit(&self, at: TscCycles, rate: NsPerCycle) -> Option<Fitted> {
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
        let mut sums = Sums::default();
        for entry in &self.entries {
            let age = age_ns(entry, at, rate) as f64;
            let ahead = carry(entry).minus(origin).as_f64();
            sums.take((best - error(entry)).exp(), age, ahead);
        }
        let slope = self.scale.usual_wander_ppb().map_or(0.0, |usual_ppb| {
            let usual = usual_ppb as f64 / 1e9;
            // A reading carried by too slow a rate is the later the older it is.
            let slope = -sums.slope(self.scale.noise_ns as f64 / usual);
            slope.clamp(-2.0 * usual, 2.0 * usual)
        });
        // A span of nanoseconds to milliseconds: a float has digits to spare.
        let milli = ((sums.mean_ahead() + slope * sums.mean_age()) * 1024.0).round() as i128;
        Some(Fitted {
            time: origin.plus(FixedPointNs(FixedPointNs::from_ns(milli).0 >> 10)),
            rate: NsPerCycle(rate.0.saturating_add_signed((rate.0 as f64 * slope) as i64)),
        })
    }
}

/// What the readings say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    pub time: FixedPointNs,
    pub rate: NsPerCycle,
}

/// Weighted sums over readings: their ages, and how far ahead they are, ns.
#[derive(Default)]
struct Sums {
    weights: f64,
    age: f64,
    ahead: f64,
    age_age: f64,
    age_ahead: f64,
}

impl Sums {
    fn take(&mut self, weight: f64, age: f64, ahead: f64) {
        self.weights += weight;
        self.age += weight * age;
        self.ahead += weight * ahead;
        self.age_age += weight * age * age;
        self.age_ahead += weight * age * ahead;
    }

    fn mean_age(&self) -> f64 {
        self.age / self.weights
    }

    fn mean_ahead(&self) -> f64 {
        self.ahead / self.weights
    }

    /// By how much they are the more ahead the older they are: least squares, drawn towards
    /// 0 as by one more reading of the usual noise that is off by the usual slope, that many
    /// ns of age away (ridge regression: Hoerl and Kennard, Technometrics 12, 1970).
    fn slope(&self, away_ns: f64) -> f64 {
        let age_age = self.age_age - self.age * self.mean_age();
        let age_ahead = self.age_ahead - self.age * self.mean_ahead();
        age_ahead / (age_age + away_ns * away_ns)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::EPOCH;

    const S: u64 = 1_000_000_000;

    /// A nanosecond a cycle.
    fn rate() -> NsPerCycle {
        NsPerCycle::of(S, S).unwrap()
    }

    /// At `t` ns, of a clock that is `ahead` ns.
    fn reading(t: u64, ahead: u64) -> Reading {
        Reading {
            at: TscCycles(t),
            low: EPOCH + t + ahead - 500,
            high: EPOCH + t + ahead + 500,
        }
    }

    /// Of a network: its noise is 15,000 ns, its readings live for 3,000 s.
    fn window(readings: impl IntoIterator<Item = (Reading, u64)>) -> Window {
        let mut window = Window::new(Scale::NETWORK);
        for (reading, error_ns) in readings {
            assert!(window.take(reading, error_ns, rate()));
        }
        window
    }

    fn errors(window: &Window) -> Vec<u64> {
        window.entries.iter().map(|entry| entry.error_ns).collect()
    }

    #[test]
    fn a_full_window_takes_what_is_better_than_its_worst_by_an_eighth_of_the_noise() {
        let error = |index: usize| if index == 5 { 10_000 } else { 9_000 };
        let full = || window((0..MOST).map(|index| (reading(S, 0), error(index))));
        for (error_ns, is_taken) in [(8_125, false), (8_124, true)] {
            let mut window = full();
            assert_eq!(window.take(reading(S, 0), error_ns, rate()), is_taken);
            assert_eq!(window.entries.len(), MOST);
            assert_eq!(errors(&window)[5] == error_ns, is_taken, "{error_ns}");
        }
        // Age makes readings worse: by 20 ns in a second.
        let mut window = full();
        assert!(window.take(reading(2 * S, 0), 8_144, rate()));
    }

    #[test]
    fn a_reading_lives_for_as_long_as_it_takes_to_lose_its_weight() {
        const LIFETIME: u64 = 3_000 * S;
        for (later, left) in [(LIFETIME, vec![1, 2]), (LIFETIME + 1, vec![2])] {
            let window = window([(reading(S, 0), 1), (reading(S + later, 0), 2)]);
            assert_eq!(errors(&window), left);
        }
    }

    #[test]
    fn what_is_worse_than_it_was_taken_for_stays_so() {
        let mut window = window([(reading(S, 0), 1), (reading(2 * S, 0), 20)]);
        window.worsen(300);
        assert_eq!(errors(&window), [301, 320]);
    }

    #[test]
    fn what_contradicts_a_reading_is_left_out() {
        let mut window = window([
            (reading(S, 0), 1),
            (reading(S, 1_001), 2),
            (reading(S, 900), 3),
        ]);
        let seen = reading(2 * S, 0).interval();
        window.retain_consistent(seen, TscCycles(2 * S), rate(), 0);
        assert_eq!(errors(&window), [1, 3]);
    }

    /// A reading that is worse by E = 60,000 ns weighs 1/e of the best, one that is
    /// worse by 2 E e^-4.
    #[test]
    fn readings_are_weighted_by_their_errors_and_carried() {
        let e = std::f64::consts::E;
        for (errors, weight) in [
            ([0, 0], 1.0),
            ([0, 60_000], e.powi(-1)),
            ([0, 120_000], e.powi(-4)),
            ([60_000, 120_000], e.powi(-3)),
        ] {
            let window = window([(reading(S, 0), errors[0]), (reading(S, 10_000), errors[1])]);
            // At the same counter value they have not aged; a second later hardly.
            for (t, tolerance) in [(S, 1), (2 * S, 10)] {
                let mean = window.fit(TscCycles(t), rate()).unwrap().time.ns();
                let ahead = mean - i128::from(EPOCH + t);
                let expected = 10_000.0 * weight / (1.0 + weight);
                let off = (ahead as f64 - expected).abs();
                assert!(
                    off <= f64::from(tolerance),
                    "{errors:?}: {ahead} {expected}"
                );
            }
        }
        assert_eq!(Window::new(Scale::NETWORK).fit(TscCycles(S), rate()), None);
    }

    /// Readings of 2,000 s, every 100 s, of a counter that has run so much slower than `rate`
    /// says: one more that is 300 s away says that it has not.
    #[test]
    fn the_rate_of_late_is_fitted_over_a_network() {
        for (ppb, expected) in [(40, 39), (-40, -39), (400, 99), (-400, -99)] {
            let ahead = |t: u64| (5_000_000 + t.cast_signed() / 1_000_000_000 * ppb) as u64;
            let times = || (1..=20).map(|turn| turn * 100 * S);
            let network = window(times().map(|t| (reading(t, ahead(t)), 0)));
            let fitted = network.fit(TscCycles(2_000 * S), rate()).unwrap();
            let found = fitted.rate.ppb_from(rate());
            assert!((found - expected).abs() <= 1, "{found} {expected}");
            if ppb.abs() < 100 {
                let off = fitted.time.ns() - i128::from(EPOCH + 2_000 * S + ahead(2_000 * S));
                assert!(off.abs() < 1_000, "{off}");
            }
            // Of a host 20 readings are of a moment.
            let mut host = Window::new(Scale::HOST);
            for t in times() {
                host.take(reading(t, ahead(t)), 0, rate());
            }
            let fitted = host.fit(TscCycles(2_000 * S), rate()).unwrap();
            assert_eq!(fitted.rate, rate());
        }
    }
}
