//! What a clock is worth that counts by a counter (V-C): a feed-forward clock that polls the
//! reference, held against it between the polls.

use serde::{Deserialize, Serialize};
use tscap_clock::{Bracket, FeedForward, RealNs, Scale, TscCycles};
use tscap_statistics::quantile;

/// A counter and its reference at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The counter's ticks since the first look.
    pub ticks: f64,
    /// Time by the reference since the first look, s.
    pub reference_s: f64,
    /// Greatest error of the one beside the other, s.
    pub bound_s: f64,
}

/// How far a clock was off its reference between two polls: ahead is positive. Less than 1 % of
/// the values are below `p1_ns`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockError {
    /// Between two polls of the reference, s.
    pub poll_s: f64,
    /// Looks between the polls, at which the clock was held against the reference.
    pub n: u64,
    /// 1 %, ns.
    pub p1_ns: i64,
    /// 25 %, ns.
    pub p25_ns: i64,
    /// Median, ns.
    pub p50_ns: i64,
    /// 75 %, ns.
    pub p75_ns: i64,
    /// 99 %, ns.
    pub p99_ns: i64,
    /// Looks at which it was farther off than the clock's bound and the look's.
    pub outside: u64,
}

/// Looks from poll to poll: of looks every second the paper's 16 s.
const POLL: usize = 16;
/// Looks from poll to poll of a short experiment, which has few.
const POLL_OF_SHORT: usize = 4;
/// Looks of an experiment that is not short.
const MANY: usize = 200;
/// A counter is taken to be so many times faster that it has this rate at least, Hz: the clock takes
/// none below 8 MHz.
const LEAST_HERTZ: f64 = 32e6;
/// Any time: the reference's first one.
const START_NS: f64 = 1e18;
/// Any value: the counter's first one, so that brackets begin above 0.
const START_TICKS: f64 = 1e12;

/// Of a counter of so many hertz, looked at every `every_s`; `None` if there are too few looks.
pub fn clock_error(looks: &[Look], hertz: f64, every_s: f64) -> Option<ClockError> {
    let factor = (LEAST_HERTZ / hertz).ceil().max(1.0);
    let poll = if looks.len() < MANY {
        POLL_OF_SHORT
    } else {
        POLL
    };
    let mut polls: Vec<Bracket> = Vec::new();
    let mut clock: Option<FeedForward> = None;
    let (mut errors, mut outside) = (Vec::new(), 0);
    for (index, look) in looks.iter().enumerate() {
        let at = TscCycles((START_TICKS + look.ticks * factor) as u64);
        let real = (START_NS + look.reference_s * 1e9) as u64;
        // The counter shows a value for a whole tick.
        let half_s = look.bound_s + 1.0 / hertz;
        if !index.is_multiple_of(poll) {
            if let Some(clock) = &clock {
                let estimate = clock.estimate(at);
                let error = estimate.real.0.wrapping_sub(real).cast_signed();
                let bound = estimate
                    .bound_ns
                    .saturating_add((half_s * 1e9).ceil() as u64 + 1);
                outside += u64::from(error.unsigned_abs() > bound);
                errors.push(error);
            }
            continue;
        }
        let half = (half_s * hertz * factor).ceil() as u64;
        let bracket = Bracket {
            tsc: [TscCycles(at.0 - half), TscCycles(at.0 + half)],
            real: [RealNs(real); 2],
        };
        match &mut clock {
            Some(clock) => {
                clock.observe(&bracket);
            }
            None => {
                polls.push(bracket);
                let [.., first, second] = &polls[..] else {
                    continue;
                };
                clock = FeedForward::new(Scale::PHC, first, second);
            }
        }
    }
    errors.sort_unstable();
    let of = |share| quantile(&errors, share);
    Some(ClockError {
        poll_s: poll as f64 * every_s,
        n: errors.len() as u64,
        p1_ns: of(0.01)?,
        p25_ns: of(0.25)?,
        p50_ns: of(0.5)?,
        p75_ns: of(0.75)?,
        p99_ns: of(0.99)?,
        outside,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a counter, ticks a second, seen every second for so long; `ppm` of a second.
    fn error(hertz: u64, seconds: usize, ppm: impl Fn(usize) -> f64) -> Option<ClockError> {
        let mut ticks = 1e6;
        let looks = (0..seconds).map(|turn| {
            let look = Look {
                ticks: f64::floor(ticks),
                reference_s: turn as f64,
                bound_s: 50e-9,
            };
            ticks += hertz as f64 * (1.0 + ppm(turn) * 1e-6);
            look
        });
        let looks: Vec<_> = looks.collect();
        clock_error(&looks, hertz as f64, 1.0)
    }

    #[test]
    fn a_clock_of_a_coarse_counter_is_off_by_its_ticks() {
        for (hertz, most_ns) in [(1_000_000_000, 60), (14_318_180, 160), (3_579_545, 600)] {
            let error = error(hertz, 600, |_| 3.0).unwrap();
            assert!(
                error.p1_ns >= -most_ns && error.p99_ns <= most_ns,
                "{error:?}"
            );
            assert_eq!((error.poll_s, error.outside), (16.0, 0), "{error:?}");
            assert!(error.n > 500, "{error:?}");
        }
    }

    #[test]
    fn a_clock_of_a_counter_that_changes_its_rate_is_off_by_as_much() {
        let error = error(
            1_000_000_000,
            600,
            |turn| if turn % 300 < 150 { 0.0 } else { 5.0 },
        );
        let error = error.unwrap();
        assert!(error.p99_ns - error.p1_ns > 1_000, "{error:?}");
    }

    #[test]
    fn a_short_experiment_is_polled_more_often() {
        assert_eq!(error(1_000_000_000, 50, |_| 0.0).unwrap().poll_s, 4.0);
        assert_eq!(error(1_000_000_000, 4, |_| 0.0), None);
        assert_eq!(error(1_000_000_000, 0, |_| 0.0), None);
    }
}
