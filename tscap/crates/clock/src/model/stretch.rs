//! The local rate: how fast the reference has run since it last changed its rate.
//!
//! A time daemon slews the host's clock, which then runs straight, but not at p̂. What
//! rates a stretch of readings allows follows from the first of them and each other
//! one. As long as p̂ is among these it is used; else their middle.

use super::pair::Pair;
use crate::NsPerCycle;
use crate::reading::Reading;

/// A rate, and how far off it may be, parts per billion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalRate {
    pub rate: NsPerCycle,
    pub drift_ppb: u64,
}

impl LocalRate {
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
    /// By how much the averages between the first reading and two others may differ while
    /// the reference keeps its rate, as a part: over a network the counter's wanders.
    slack: f64,
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
            slack: if pair.wanders {
                pair.wander_ppb as f64 / 1e9
            } else {
                0.0
            },
            is_bent,
            first,
            base: pair.rate,
            slowest: f64::NEG_INFINITY,
            fastest: f64::INFINITY,
        }
    }

    /// Takes in a later reading; `None` if no line goes through all that is as straight as
    /// the rate's wander allows: the reference has changed its rate.
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
        if self.slowest > self.fastest + self.slack {
            return None;
        }
        let of_average = average.rate.0 as f64 / self.base.0 as f64 - 1.0;
        let slack = average.drift_ppb as f64 / 1e9;
        if self.slowest <= of_average + slack && of_average - slack <= self.fastest {
            let farthest = (of_average - self.slowest).max(self.fastest - of_average);
            let farthest_ppb = (farthest * 1e9).ceil() as u64;
            return Some(LocalRate {
                drift_ppb: if self.is_bent {
                    average
                        .drift_ppb
                        .max(farthest_ppb.saturating_add(self.wander_ppb))
                } else {
                    average.drift_ppb
                },
                ..average
            });
        }
        let middle = (self.slowest + self.fastest) / 2.0;
        // Less than nothing while the averages differ as the rate wanders, by its wander at
        // most: it is within that of the slowest and of the fastest of them.
        let half_ppb = ((self.fastest - self.slowest) / 2.0 * 1e9).ceil() as i64;
        Some(LocalRate {
            rate: NsPerCycle((self.base.0 as f64 * (1.0 + middle)) as u64),
            drift_ppb: self.wander_ppb.saturating_add_signed(half_ppb),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::scale::Scale;
    use super::*;
    use crate::TscCycles;
    use crate::scripted::EPOCH;

    const S: u64 = 1_000_000_000;

    /// At `t` ns, within 10 ns of a clock that is `ahead` ns.
    fn reading(t: u64, ahead: i64) -> Reading {
        let time = (EPOCH + t).checked_add_signed(ahead).unwrap();
        Reading {
            at: TscCycles(t),
            low: time - 10,
            high: time + 10,
        }
    }

    /// So many parts per billion from a nanosecond a cycle.
    fn rate(ppb: i64) -> NsPerCycle {
        let span = (1_000_000_000 * S).checked_add_signed(ppb * S.cast_signed());
        NsPerCycle::of(span.unwrap(), 1_000_000_000 * S).unwrap()
    }

    /// Two readings a second apart, of which the second is `ahead`, allow rates from
    /// `ahead` − 21 to `ahead` + 21 ppb.
    #[test]
    fn a_stretch_goes_by_the_average_if_that_is_possible_and_else_by_its_middle() {
        let pair = Pair::new(reading(0, 0), rate(0), Scale::NETWORK);
        let wander = pair.wander_ppb;
        for sign in [1, -1] {
            let take = |is_bent, of_average, drift_ppb| {
                let average = LocalRate {
                    rate: rate(sign * of_average),
                    drift_ppb,
                };
                let mut stretch = Stretch::new(reading(0, 0), &pair, is_bent);
                let local = stretch.take(&reading(S, sign * 100), average).unwrap();
                let is_average = local.rate == average.rate;
                let ppb = local.rate.ppb_from(rate(0)) * sign;
                (is_average, ppb, local.drift_ppb)
            };
            let near = |reported: (bool, i64, u64), expected: (bool, i64, u64)| {
                let (is_average, ppb, drift) = reported;
                is_average == expected.0
                    && (ppb - expected.1).abs() <= 1
                    && drift.abs_diff(expected.2) <= 1
            };
            for (reported, expected) in [
                (take(false, 0, 70), (false, 100, 21 + wander)),
                (take(false, 0, 90), (true, 0, 90)),
                (take(false, 50, 20), (false, 100, 21 + wander)),
                (take(false, 50, 40), (true, 50, 40)),
                (take(false, 150, 20), (false, 100, 21 + wander)),
                (take(false, 150, 40), (true, 150, 40)),
                // No more is known of the average than what this stretch tells.
                (take(true, 50, 40), (true, 50, 71 + wander)),
                (take(true, 100, 40), (true, 100, 21 + wander)),
                (take(true, 150, 40), (true, 150, 71 + wander)),
                (take(true, 100, 400), (true, 100, 400)),
            ] {
                assert!(near(reported, expected), "{reported:?} {expected:?} {sign}");
            }
        }
    }

    #[test]
    fn a_stretch_ends_where_no_line_goes_through_all() {
        // Between 29 and 71 ppb after a second: from 58 to 142 ns in 2 s, give or take 21 ns;
        // and the average may wander by 100 ppb from one to the other over a network.
        let aheads = [36, 38, 162, 164, -164, -162, 362, 364];
        for (scale, straight) in [
            (Scale::HOST, &[38, 162][..]),
            (Scale::PHC, &[38, 162]),
            (Scale::NETWORK, &[36, 38, 162, 164, -162, 362]),
        ] {
            let pair = Pair::new(reading(0, 0), rate(0), scale);
            for ahead in aheads {
                let average = LocalRate::average(&pair);
                let mut stretch = Stretch::new(reading(0, 0), &pair, false);
                assert!(stretch.take(&reading(S, 50), average).is_some());
                let local = stretch.take(&reading(2 * S, ahead), average);
                assert_eq!(local.is_some(), straight.contains(&ahead), "{ahead}");
            }
        }
    }

    /// After a second at 29 to 71 ppb on average, and another one at −101 to −59: it is
    /// within 100 ppb of both averages, of the first 29 and of both −15 at most.
    #[test]
    fn a_rate_that_wanders_is_within_that_of_each_average() {
        let average = LocalRate {
            rate: rate(500),
            drift_ppb: 10,
        };
        let pair = Pair::new(reading(0, 0), rate(0), Scale::NETWORK);
        let mut stretch = Stretch::new(reading(0, 0), &pair, false);
        stretch.take(&reading(S, 50), average).unwrap();
        let local = stretch.take(&reading(2 * S, -50), average).unwrap();
        // From 29 − 100 to −14.5 + 100 ppb.
        assert!((local.rate.ppb_from(rate(0)) - 7).abs() <= 1, "{local:?}");
        assert!(local.drift_ppb.abs_diff(78) <= 1, "{local:?}");
    }
}
