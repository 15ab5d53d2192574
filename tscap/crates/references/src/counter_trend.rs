//! Values of a counter beside the TSC, in order of time, made to one count that never wraps.

use tscap_time::TscCycles;

/// Readings of which the narrowest is taken.
const READINGS: usize = 5;
/// A counter that is off by more than this share of the time since, and by [`SLACK_S`], was set.
const FARTHEST: f64 = 1e-3;
/// What a reading can be late by, s.
const SLACK_S: f64 = 1e-3;

/// A value between two readings of the TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The TSC before and after.
    pub tsc: [TscCycles; 2],
    /// Ticks, as the counter shows them.
    pub value: u64,
}

impl Sighting {
    fn width(&self) -> u64 {
        self.tsc[1].0.wrapping_sub(self.tsc[0].0)
    }

    /// The middle of it.
    fn at(&self) -> TscCycles {
        TscCycles(self.tsc[0].0.wrapping_add(self.width() / 2))
    }
}

/// The narrowest of several readings; `None` if all failed.
#[inline(always)]
pub fn sight(
    mut tsc: impl FnMut() -> TscCycles,
    mut read: impl FnMut() -> Option<u64>,
) -> Option<Sighting> {
    let readings = (0..READINGS).filter_map(|_| {
        let before = tsc();
        let value = read()?;
        let tsc = [before, tsc()];
        Some(Sighting { tsc, value })
    });
    readings.min_by_key(Sighting::width)
}

/// A point of a counter's course.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The turn of the experiment that it is of.
    pub turn: usize,
    /// The middle of the bracket, cycles of the TSC.
    pub at: TscCycles,
    /// Half of its width, cycles, rounded up: the greatest error of `at`.
    pub half_cycles: u64,
    /// Ticks since the first point, however often it wrapped.
    pub ticks: u64,
    /// Points before and after somebody set the counter have different numbers.
    pub segment: u32,
}

/// A counter's course.
#[derive(Clone, Debug)]
pub struct CounterTrend {
    bits: u32,
    /// Ticks in a cycle of the TSC, about.
    ticks_per_cycle: f64,
    /// Ticks that a reading can be late by.
    slack: f64,
    last_value: u64,
    points: Vec<Point>,
}

impl CounterTrend {
    /// Of a counter of so many bits and hertz, beside a TSC of so many hertz.
    pub fn new(bits: u32, hertz: f64, tsc_hertz: f64) -> Self {
        Self {
            bits,
            ticks_per_cycle: hertz / tsc_hertz,
            slack: hertz * SLACK_S,
            last_value: 0,
            points: Vec::new(),
        }
    }

    /// In order of time.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// About so many ticks a cycle of the TSC.
    pub fn ticks_per_cycle(&self) -> f64 {
        self.ticks_per_cycle
    }

    /// Takes in what was seen in a turn, later than all before.
    pub fn take(&mut self, turn: usize, sighting: Sighting) {
        let at = sighting.at();
        let (ticks, segment) = match self.points.last() {
            None => (0, 0),
            Some(last) => {
                let cycles = at.0.wrapping_sub(last.at.0) as f64;
                let expected = cycles * self.ticks_per_cycle;
                let since = self.since(sighting.value, expected);
                let is_set = (since - expected).abs() > expected * FARTHEST + self.slack;
                let ticks = last.ticks.wrapping_add(since.max(0.0) as u64);
                (ticks, last.segment + u32::from(is_set))
            }
        };
        self.last_value = sighting.value;
        self.points.push(Point {
            turn,
            at,
            half_cycles: sighting.width().div_ceil(2),
            ticks,
            segment,
        });
    }

    /// Ticks since the last value, as many wraps of it later as `expected` says. Exact up to
    /// 2^53: 104 days of nanoseconds.
    fn since(&self, value: u64, expected: f64) -> f64 {
        let difference = value.wrapping_sub(self.last_value);
        if self.bits == 64 {
            // A clock that was set back.
            return difference.cast_signed() as f64;
        }
        let whole = (1u64 << self.bits) as f64;
        let shown = (difference & ((1 << self.bits) - 1)) as f64;
        shown + ((expected - shown) / whole).round().max(0.0) * whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 1 GHz of the TSC.
    const TSC_HERTZ: f64 = 1e9;

    fn seen(at: u64, value: u64) -> Sighting {
        let tsc = [at - 50, at + 50].map(TscCycles);
        Sighting { tsc, value }
    }

    #[test]
    fn the_narrowest_reading_is_taken() {
        let mut times = [0, 90, 100, 110, 200, 1_000, 2_000]
            .into_iter()
            .map(TscCycles);
        let mut values = [Some(7), Some(8), None].into_iter();
        let found = sight(|| times.next().unwrap(), || values.next().flatten());
        let tsc = [100, 110].map(TscCycles);
        assert_eq!(found, Some(Sighting { tsc, value: 8 }));
        assert_eq!(sight(|| TscCycles(0), || None), None);
    }

    /// 24 bits at 3.579545 MHz wrap every 4.7 s: one look is late by several wraps.
    #[test]
    fn a_narrow_counter_is_counted_on_across_its_wraps() {
        let hertz = 3_579_545.0;
        let mut course = CounterTrend::new(24, hertz, TSC_HERTZ);
        let looks: [u64; 6] = [1, 2, 5, 30, 31, 300];
        for (turn, second) in looks.into_iter().enumerate() {
            let ticks = 16_000_000 + second * 3_579_545;
            course.take(turn, seen(second * 1_000_000_000, ticks & 0xff_ffff));
        }
        for (point, second) in course.points().iter().zip(looks) {
            assert_eq!(point.ticks, (second - 1) * 3_579_545, "{second}");
            assert_eq!((point.segment, point.half_cycles), (0, 50));
        }
    }

    #[test]
    fn a_clock_that_is_set_begins_a_segment() {
        let mut course = CounterTrend::new(64, 1e9, TSC_HERTZ);
        let second = 1_000_000_000;
        let offsets: [i64; 5] = [0, 40, -90, -5_000_000_000, -5_000_000_000];
        for (turn, offset) in offsets.into_iter().enumerate() {
            let at = (turn as u64 + 10) * second;
            course.take(turn, seen(at, at.wrapping_add_signed(offset)));
        }
        let segments: Vec<_> = course.points().iter().map(|point| point.segment).collect();
        assert_eq!(segments, [0, 0, 0, 1, 1]);
        assert_eq!(course.points()[2].ticks, 2 * second - 90);
        let [.., before, after] = course.points() else {
            panic!("five points");
        };
        assert_eq!(after.ticks - before.ticks, second);
    }
}
