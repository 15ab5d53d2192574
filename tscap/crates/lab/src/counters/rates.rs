//! How fast a counter went by another one: by phase, over time, and on each scale (IV-A, IV-B).

use super::schema::{PhaseRate, RatePoint, Scale};
use tscap_references::{ClockError, CounterTrend, Look, Point, clock_error};
use tscap_statistics::{Allan, allan};

/// Points of a curve: more would not be seen.
const POINTS: usize = 400;

/// A counter whose course is known.
#[derive(Clone, Copy)]
pub(super) enum Seen<'a> {
    /// The TSC, beside which all others are seen.
    Tsc,
    Other(&'a CounterTrend),
}

/// Both counters at one moment, since the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    turn: usize,
    /// Ticks of the counter.
    ticks: f64,
    /// Time by the reference, s.
    reference_s: f64,
    /// Greatest error of the one beside the other, s.
    bound_s: f64,
    segments: [u32; 2],
}

/// Both courses as pairs, in order of time.
pub(super) struct Rates {
    pairs: Vec<Pair>,
    /// The phase of each turn.
    phases: Vec<usize>,
}

impl Rates {
    /// Of `held` by a reference of `hertz`, beside a TSC of `tsc_hertz`; with the phase of each
    /// turn. A moment at which one of both was not read is left out.
    pub fn new(
        held: Seen<'_>,
        against: Seen<'_>,
        [hertz, tsc_hertz]: [f64; 2],
        phases: &[usize],
    ) -> Self {
        let pairs = match (held, against) {
            (Seen::Tsc, Seen::Tsc) => Vec::new(),
            (Seen::Other(counter), Seen::Tsc) => beside_tsc(counter, |point, cycles| Pair {
                turn: point.turn,
                ticks: point.ticks as f64,
                reference_s: cycles / tsc_hertz,
                bound_s: point.half_cycles as f64 / tsc_hertz,
                segments: [point.segment, 0],
            }),
            (Seen::Tsc, Seen::Other(reference)) => beside_tsc(reference, |point, cycles| Pair {
                turn: point.turn,
                ticks: cycles,
                reference_s: point.ticks as f64 / hertz,
                bound_s: point.half_cycles as f64 / tsc_hertz,
                segments: [0, point.segment],
            }),
            (Seen::Other(counter), Seen::Other(reference)) => {
                both(counter, reference, hertz, tsc_hertz)
            }
        };
        Self {
            pairs,
            phases: phases.to_vec(),
        }
    }

    /// What a clock is worth that counts by a counter of so many hertz, seen every `every_s`;
    /// `None` where somebody set one of both.
    pub fn clock_error(&self, hertz: f64, every_s: f64) -> Option<ClockError> {
        let first = self.pairs.first()?;
        let is_one = self.pairs.iter().all(|it| it.segments == first.segments);
        let look = |pair: &Pair| Look {
            ticks: pair.ticks,
            reference_s: pair.reference_s,
            bound_s: pair.bound_s,
        };
        let looks: Vec<_> = self.pairs.iter().map(look).collect();
        clock_error(&looks, hertz, every_s).filter(|_| is_one)
    }

    fn phase(&self, pair: &Pair) -> Option<usize> {
        self.phases.get(pair.turn).copied()
    }

    /// First and last pair of a phase within one segment: the one that the phase ends in.
    fn ends(&self, phase: usize) -> Option<(Pair, Pair)> {
        let of_phase = self.pairs.iter().filter(|it| self.phase(it) == Some(phase));
        let last = *of_phase.clone().next_back()?;
        let first = *of_phase.clone().find(|it| it.segments == last.segments)?;
        (last.reference_s > first.reference_s).then_some((first, last))
    }

    /// Ticks in a second by the reference, over these phases together, and the greatest relative
    /// error of that; `None` if nothing was seen twice in one.
    fn hertz(&self, phases: impl IntoIterator<Item = usize>) -> Option<(f64, f64)> {
        let (mut ticks, mut seconds, mut bound_s) = (0.0, 0.0, 0.0);
        for (first, last) in phases.into_iter().filter_map(|phase| self.ends(phase)) {
            ticks += last.ticks - first.ticks;
            seconds += last.reference_s - first.reference_s;
            bound_s += first.bound_s + last.bound_s;
        }
        (seconds > 0.0 && ticks > 0.0).then(|| (ticks / seconds, bound_s / seconds))
    }

    /// In each of `count` phases, against the mean of the idle ones.
    pub fn by_phase(&self, count: usize, idle: &[usize]) -> Vec<Option<PhaseRate>> {
        let usual = self.hertz(idle.iter().copied());
        let of_phase = |phase| {
            let (hertz, bound) = self.hertz([phase])?;
            let (usual, usual_bound) = usual?;
            Some(PhaseRate {
                hertz,
                ppm: (hertz / usual - 1.0) * 1e6,
                bound_ppm: (bound + usual_bound) * 1e6,
            })
        };
        (0..count).map(of_phase).collect()
    }

    /// The rate against the mean of the idle phases over time, of as many intervals together as
    /// leave few points.
    pub fn over_time(&self, idle: &[usize]) -> Vec<RatePoint> {
        let Some((usual, _)) = self.hertz(idle.iter().copied()) else {
            return Vec::new();
        };
        let stride = self.pairs.len().div_ceil(POINTS).max(1);
        let chosen: Vec<_> = self.pairs.iter().step_by(stride).collect();
        let points = chosen.windows(2).filter_map(|pair| {
            let (first, last) = (pair[0], pair[1]);
            let seconds = last.reference_s - first.reference_s;
            let is_one = first.segments == last.segments && seconds > 0.0;
            is_one.then(|| RatePoint {
                seconds: last.reference_s,
                ppm: ((last.ticks - first.ticks) / seconds / usual - 1.0) * 1e6,
            })
        });
        points.collect()
    }

    /// The overlapping Allan deviation on each scale, of phases every `every_s`.
    pub fn scales(&self, every_s: f64) -> Vec<Scale> {
        let all = 0..=self.phases.iter().copied().max().unwrap_or(0);
        let Some((hertz, _)) = self.hertz(all) else {
            return Vec::new();
        };
        // Of each segment a series of its own, ns; NaN where a turn has no pair.
        let mut series: Vec<(usize, [u32; 2], Vec<f64>)> = Vec::new();
        for pair in &self.pairs {
            let phase_ns = (pair.ticks / hertz - pair.reference_s) * 1e9;
            match series.last_mut() {
                Some((start, segments, phases)) if *segments == pair.segments => {
                    phases.resize(pair.turn - *start, f64::NAN);
                    phases.push(phase_ns);
                }
                _ => series.push((pair.turn, pair.segments, vec![phase_ns])),
            }
        }
        let scales = allan(series.iter().map(|(_, _, phases)| &phases[..]), every_s);
        let scale = |of: Allan| Scale {
            tau_s: of.tau_s,
            terms: of.terms,
            deviation: of.deviation,
            interval: of.interval,
        };
        scales.into_iter().map(scale).collect()
    }
}

/// A pair of each point and the cycles since the first.
fn beside_tsc(course: &CounterTrend, pair: impl Fn(&Point, f64) -> Pair) -> Vec<Pair> {
    let Some(first) = course.points().first() else {
        return Vec::new();
    };
    let since = |point: &Point| point.at.0.wrapping_sub(first.at.0) as f64;
    let points = course.points().iter();
    points.map(|point| pair(point, since(point))).collect()
}

/// Each reading of the reference with the counter's of the same turn, carried on for the
/// microseconds between both by its usual rate.
fn both(counter: &CounterTrend, reference: &CounterTrend, hertz: f64, tsc_hertz: f64) -> Vec<Pair> {
    let mut points = reference.points().iter().peekable();
    let pairs = counter.points().iter().filter_map(|point| {
        while points.next_if(|it| it.turn < point.turn).is_some() {}
        let reference = points.next_if(|it| it.turn == point.turn)?;
        let apart = reference.at.0.wrapping_sub(point.at.0).cast_signed() as f64;
        let halves = point.half_cycles + reference.half_cycles;
        Some(Pair {
            turn: point.turn,
            ticks: point.ticks as f64 + apart * counter.ticks_per_cycle(),
            reference_s: reference.ticks as f64 / hertz,
            bound_s: halves as f64 / tsc_hertz,
            segments: [point.segment, reference.segment],
        })
    });
    pairs.collect()
}

#[cfg(test)]
mod tests;
