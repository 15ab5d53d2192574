//! What it takes to read a counter (IV-C): the TSC, the counter, the TSC.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::schema::{LatencyBin, LatencyPoint};
use tscap_statistics::{Distribution, ValueRange, quantile};
use tscap_time::TscCycles;

/// The shares of [`Quartiles`], per mille.
const SHARES: [u64; 5] = [250, 500, 750, 950, 999];

/// A distribution as the paper draws it, cycles of the TSC: whiskers at the least and at 95 %, the
/// quartiles as a box; and its tail. Of more than 4,096 values quantiles are right within 0.05 %.
/// One with fewer than ten values beyond it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quartiles {
    /// Number of readings.
    pub n: u64,
    /// Fewest cycles that a reading took.
    pub min: i64,
    /// 25 % are no greater.
    pub p25: Option<i64>,
    /// Half of the readings took no more cycles.
    pub p50: Option<i64>,
    /// 75 % are no greater.
    pub p75: Option<i64>,
    /// 95 % are no greater.
    pub p95: Option<i64>,
    /// 99.9 % are no greater.
    pub p99_9: Option<i64>,
    /// Most cycles that a reading took.
    pub max: i64,
}

impl Quartiles {
    /// Of a distribution; `None` if it has no value.
    pub(super) fn of(distribution: Distribution) -> Option<Self> {
        let ValueRange { n, min, max } = distribution.range()?;
        let [p25, p50, p75, p95, p99_9] = distribution.quantiles(SHARES);
        Some(Self {
            n,
            min,
            p25,
            p50,
            p75,
            p95,
            p99_9,
            max,
        })
    }

    /// The same, all less `cycles`.
    #[must_use]
    pub(super) fn less(self, cycles: i64) -> Self {
        let less = |value: Option<i64>| value.map(|value| value - cycles);
        Self {
            n: self.n,
            min: self.min - cycles,
            p25: less(self.p25),
            p50: less(self.p50),
            p75: less(self.p75),
            p95: less(self.p95),
            p99_9: less(self.p99_9),
            max: self.max - cycles,
        }
    }

    /// The interquartile range, cycles: from the first quartile to the third one.
    pub fn iqr(&self) -> Option<i64> {
        Some(self.p75? - self.p25?)
    }
}

/// Points of a curve: more would not be seen.
const POINTS: usize = 400;
/// Bars of a histogram.
const BARS: i64 = 100;

/// The medians of looks over time, less the median of an empty pair of their phase, of as many looks
/// together as leave few points. `phases` has the phase of each turn.
pub(super) fn course(
    medians: &[(usize, i64)],
    phases: &[usize],
    empty: &[Option<Quartiles>],
    every_s: f64,
) -> Vec<LatencyPoint> {
    let stride = medians.len().div_ceil(POINTS).max(1);
    let points = medians.chunks(stride).filter_map(|looks| {
        let (turn, _) = looks[0];
        let phase = *phases.get(turn)?;
        let empty = empty.get(phase).copied().flatten()?.p50?;
        let mut cycles: Vec<_> = looks.iter().map(|(_, cycles)| *cycles).collect();
        cycles.sort_unstable();
        Some(LatencyPoint {
            seconds: turn as f64 * every_s,
            cycles: quantile(&cycles, 0.5)? - empty,
        })
    });
    points.collect()
}

/// How many readings took so long, less `empty` cycles, up to 99.9 % of them: in bars of one
/// width.
pub(super) fn histogram(distribution: &Distribution, empty: i64) -> Vec<LatencyBin> {
    let (Some(range), [p99_9]) = (distribution.range(), distribution.quantiles([999])) else {
        return Vec::new();
    };
    let last = p99_9.unwrap_or(range.max);
    let width = ((last - range.min) / BARS + 1).max(1);
    let mut bars: Vec<LatencyBin> = Vec::new();
    for bin in distribution.bins().iter().filter(|bin| bin.from_ns <= last) {
        let index = (bin.from_ns - range.min).max(0) / width;
        let from_cycles = range.min + index * width - empty;
        match bars.last_mut() {
            Some(bar) if bar.from_cycles == from_cycles => bar.n += bin.n,
            _ => bars.push(LatencyBin {
                from_cycles,
                to_cycles: from_cycles + width,
                n: bin.n,
            }),
        }
    }
    bars
}

/// Readings in a row.
#[derive(Debug, Default)]
pub(super) struct Burst {
    /// What each took, cycles of the TSC, with what the bracket takes.
    pub cycles: Vec<i64>,
    /// What was read, ticks of the counter.
    pub values: Vec<u64>,
    pub failed: u64,
}

/// Reads a counter so often, each time between two readings of the TSC.
#[inline(always)]
pub(super) fn burst(
    readings: usize,
    mut tsc: impl FnMut() -> TscCycles,
    mut read: impl FnMut() -> Option<u64>,
) -> Burst {
    let mut burst = Burst {
        cycles: Vec::with_capacity(readings),
        values: Vec::with_capacity(readings),
        failed: 0,
    };
    for _ in 0..readings {
        let before = tsc();
        let value = black_box(read());
        let after = tsc();
        match value {
            Some(value) => {
                burst
                    .cycles
                    .push(after.0.wrapping_sub(before.0).cast_signed());
                burst.values.push(value);
            }
            None => burst.failed += 1,
        }
    }
    burst
}

/// The greatest step that all differences of values in a row are multiples of: what a counter's
/// least step can be at most. `step` is that of earlier values, 0 of none.
pub(super) fn common_step(step: u64, values: &[u64], bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let differences = values
        .windows(2)
        .map(|pair| pair[1].wrapping_sub(pair[0]) & mask);
    // One that goes back by a little says nothing of its step.
    let forward = differences.filter(|difference| *difference <= mask / 2);
    forward.fold(step, gcd)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quartiles(values: impl IntoIterator<Item = i64>) -> Quartiles {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|value| distribution.add(value));
        Quartiles::of(distribution).unwrap()
    }

    #[test]
    fn the_box_is_that_of_the_values() {
        assert_eq!(Quartiles::of(Distribution::new()), None);
        let of = quartiles((1..=1_000).rev());
        assert_eq!((of.n, of.min, of.max), (1_000, 1, 1_000));
        let (p25, p50, p75, p95) = (Some(250), Some(500), Some(750), Some(950));
        assert_eq!((of.p25, of.p50, of.p75, of.p95), (p25, p50, p75, p95));
        assert_eq!((of.p99_9, of.iqr()), (None, Some(500)));
        let p99_9 = quartiles(1..=10_000).p99_9.unwrap();
        assert!(p99_9.abs_diff(9_990) <= 5, "{p99_9}");
    }

    #[test]
    fn a_histogram_has_bars_of_one_width_up_to_the_tail() {
        let mut distribution = Distribution::new();
        (0..20_000).for_each(|value| distribution.add(100 + value % 10));
        distribution.add(1_000_000);
        let bars = histogram(&distribution, 40);
        let found: Vec<_> = bars
            .iter()
            .map(|it| (it.from_cycles, it.to_cycles, it.n))
            .collect();
        let expected: Vec<_> = (60..70).map(|from| (from, from + 1, 2_000)).collect();
        assert_eq!(found, expected);
        assert_eq!(histogram(&Distribution::new(), 40), []);
    }

    #[test]
    fn a_course_has_the_medians_of_its_looks_in_few_points() {
        let medians: Vec<_> = (0..1_000)
            .map(|turn| (turn, 100 + (turn as i64 % 3)))
            .collect();
        let phases: Vec<_> = (0..1_000).map(|turn| turn / 500).collect();
        let empty = [Some(quartiles(0..100)), None];
        let points = course(&medians, &phases, &empty, 0.1);
        // Of the second phase no empty pair is known.
        assert_eq!(points.len(), 167);
        assert!(
            points.iter().all(|it| (51..=52).contains(&it.cycles)),
            "{points:?}"
        );
        assert_eq!(points[1].seconds, 3.0 * 0.1);
    }

    /// What an empty pair takes is taken off all of it, also where that leaves less than nothing.
    #[test]
    fn an_empty_pair_is_taken_off() {
        let of = quartiles(20..=119).less(30);
        assert_eq!((of.min, of.p50, of.max), (-10, Some(39), 89));
        assert_eq!((of.p99_9, of.iqr()), (None, Some(50)));
    }

    /// A counter of 100 cycles a reading, by a TSC that takes 10.
    #[test]
    fn a_reading_takes_what_lies_between_the_readings_of_the_tsc() {
        let now = std::cell::Cell::new(u64::MAX - 200);
        let pass = |cycles| now.set(now.get().wrapping_add(cycles));
        let mut turn = 0;
        let tsc = || {
            pass(10);
            TscCycles(now.get())
        };
        let read = || {
            pass(100);
            turn += 1;
            (turn != 3).then_some(turn)
        };
        let burst = burst(5, tsc, read);
        assert_eq!(burst.cycles, [110; 4]);
        assert_eq!((burst.values, burst.failed), (vec![1, 2, 4, 5], 1));
    }

    #[test]
    fn the_step_is_what_all_differences_share() {
        assert_eq!(common_step(0, &[100, 136, 208, 208, 226], 64), 18);
        assert_eq!(common_step(18, &[0, 27], 64), 9);
        assert_eq!(common_step(0, &[7], 64), 0);
        // Across a wrap of 24 bits, and with a reading that goes back.
        assert_eq!(common_step(0, &[0xff_fffc, 0, 8], 24), 4);
        assert_eq!(common_step(0, &[40, 36, 44], 64), 8);
    }
}
