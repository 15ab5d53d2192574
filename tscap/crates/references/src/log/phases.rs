//! The clock against the counter, often enough for its stability on short scales.

use serde::{Deserialize, Serialize};

use tscap_clock::reading::Reading;
use tscap_clock::{
    Bracket, CrossTimestamp, FeedForward, NsPerCycle, Observation, Tracker, TscCycles,
};

const BIN_NS: i64 = 100_000_000;

/// How far CLOCK_REALTIME was ahead of a straight line in the counter, bin by bin. A
/// series goes on where the one before it ends; one that begins elsewhere has a line
/// of its own, as after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// The counter at the start of the first bin.
    pub from: TscCycles,
    /// Cycles of a bin: 100 ms.
    pub every: u64,
    /// In the middle of each bin, by its narrowest reading, ns; null where there was
    /// none. The line has the period that p̂ had when the series began.
    pub ns: Vec<Option<i64>>,
}

impl Phases {
    /// The counter where the next of the series begins.
    pub fn end(&self) -> TscCycles {
        let cycles = self.every.saturating_mul(self.ns.len() as u64);
        TscCycles(self.from.0.saturating_add(cycles))
    }
}

/// Makes phases of readings.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseBins {
    line: Option<Line>,
    taken: Vec<Phases>,
}

/// A series under way.
#[derive(Clone, Copy, Debug)]
struct Line {
    origin: TscCycles,
    /// CLOCK_REALTIME there, ns.
    real: u64,
    rate: NsPerCycle,
    /// Cycles of a bin.
    every: u64,
    /// Where the bin under way begins.
    bin: TscCycles,
    /// Width and phase of its narrowest reading.
    best: Option<(u64, i64)>,
}

/// Bins without a reading after which a series ends, rather than be full of holes: as
/// of a process that was stopped.
const LONGEST_HOLE: u64 = 600;

impl PhaseBins {
    /// Takes in what a tracker made of a reading.
    pub fn observe(&mut self, cross: &CrossTimestamp, seen: Observation, tracker: &Tracker) {
        match (seen, cross.bracket(), tracker.counter()) {
            (Observation::Agrees, Some(bracket), Some(counter)) if !counter.is_wide(&bracket) => {
                self.take(&bracket, counter.model());
            }
            (Observation::Stepped { .. } | Observation::CounterJumped { .. }, ..) => self.restart(),
            _ => {}
        }
    }

    /// Takes in a reading, as the model knows its clock by now.
    fn take(&mut self, bracket: &Bracket, model: &FeedForward) {
        let Some(reading) = Reading::new(bracket, model.rate()) else {
            return;
        };
        let is_within = |line: &Line| {
            let since = reading.at.0.checked_sub(line.bin.0);
            since.is_some_and(|cycles| cycles / line.every <= LONGEST_HOLE)
        };
        if !self.line.as_ref().is_some_and(is_within) {
            self.restart();
        }
        let line = self
            .line
            .get_or_insert_with(|| Line::new(&reading, model.rate()));
        let series = self.taken.last_mut();
        let series = match series.filter(|series| series.end() == line.bin) {
            Some(series) => series,
            None => {
                self.taken.push(Phases::empty(line));
                self.taken.last_mut().expect("it was pushed")
            }
        };
        while reading.at.0 - line.bin.0 >= line.every {
            series.ns.push(line.best.take().map(|(_, ns)| ns));
            line.bin.0 += line.every;
        }
        let seen = (reading.width(), line.phase(&reading, model.local_rate()));
        if line.best.is_none_or(|best| seen.0 < best.0) {
            line.best = Some(seen);
        }
    }

    /// The clock was set, or the counter jumped: the next reading begins a series.
    fn restart(&mut self) {
        let line = self.line.take();
        if let Some((line, series)) = line.zip(self.taken.last_mut()) {
            series.ns.push(line.best.map(|(_, ns)| ns));
        }
    }

    /// What became whole since the last call.
    pub fn take_whole(&mut self) -> Vec<Phases> {
        let mut whole = std::mem::take(&mut self.taken);
        whole.retain(|series| !series.ns.is_empty());
        whole
    }
}

impl Line {
    fn new(first: &Reading, rate: NsPerCycle) -> Self {
        Self {
            origin: first.at,
            real: first.middle(),
            rate,
            every: rate.cycles_in(BIN_NS).unsigned_abs().max(2),
            bin: first.at,
            best: None,
        }
    }

    /// Carried to the middle of the bin by the clock's recent rate, ns.
    fn phase(&self, reading: &Reading, local: NsPerCycle) -> i64 {
        let gone = self.rate.duration_ns(reading.at.0 - self.origin.0);
        let line = self.real.wrapping_add(gone);
        let seen = reading.middle().wrapping_sub(line).cast_signed();
        // The bin may end beyond what a counter can show.
        let (middle, at) = (self.every / 2, reading.at.0 - self.bin.0);
        let way = self.rate.duration_ns(middle.abs_diff(at));
        let carried = i128::from(way) * i128::from(local.ppb_from(self.rate)) / 1_000_000_000;
        let carried = i64::try_from(carried).unwrap_or(0);
        if middle >= at {
            seen + carried
        } else {
            seen - carried
        }
    }
}

impl Phases {
    fn empty(line: &Line) -> Self {
        Self {
            from: line.bin,
            every: line.every,
            ns: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_clock::scripted::Host;
    use tscap_clock::{RealNs, Scale};

    const RATE: NsPerCycle = NsPerCycle::ONE;
    const MS: u64 = 1_000_000;

    /// Readings of a host whose cycles are ns, each at so many ms and as wide as that, of a
    /// clock that is ahead by a third number.
    fn taken(bins: &mut PhaseBins, readings: impl IntoIterator<Item = (u64, u64, u64)>) {
        let host = Host {
            hertz: 1_000_000_000,
            slews: vec![],
        };
        let gaps = [20, 60, 20];
        let [first, second] = [0, 100 * MS].map(|t| host.bracket(t, gaps));
        let model = FeedForward::new(Scale::HOST, &first, &second).unwrap();
        for (ms, width, ahead) in readings {
            let half = width / 2;
            let mut bracket = host.bracket(ms * MS - half, [half, 0, half]);
            bracket.real = bracket.real.map(|real| RealNs(real.0 + ahead));
            bins.take(&bracket, &model);
        }
    }

    #[test]
    fn a_bin_has_its_narrowest_reading_and_the_one_under_way_ends_with_a_step() {
        let mut bins = PhaseBins::default();
        taken(&mut bins, [(1_000, 40, 0), (1_030, 20, 7), (1_060, 60, 13)]);
        assert_eq!(bins.take_whole(), []);
        taken(&mut bins, [(1_110, 20, 9), (1_150, 20, 8), (1_320, 90, 5)]);
        bins.restart();
        let [series] = &bins.take_whole()[..] else {
            panic!("they follow on one another");
        };
        assert_eq!(series.ns, [Some(7), Some(9), None, Some(5)]);
        assert_eq!((series.from.0 - 1_000_000_000_000) / MS, 1_000);
    }

    /// After a minute without a reading.
    #[test]
    fn a_long_hole_ends_a_series() {
        for (later, expected) in [(60_000, vec![601]), (60_200, vec![1, 1])] {
            let mut bins = PhaseBins::default();
            taken(&mut bins, [(1_010, 20, 0), (1_010 + later, 20, 0)]);
            bins.restart();
            let lengths = bins.take_whole().into_iter().map(|series| series.ns.len());
            assert_eq!(lengths.collect::<Vec<_>>(), expected);
        }
    }

    fn reading(at: u64, real: u64, width: u64) -> Reading {
        Reading {
            at: TscCycles(at),
            low: real - width / 2,
            high: real + width / 2,
        }
    }

    /// By 1,000 ppm more than p̂: 40 µs in the 40 ms to the middle of the bin.
    #[test]
    fn a_phase_is_carried_to_the_middle_of_its_bin() {
        let line = Line::new(&reading(1_000, 5_000_000_000, 20), RATE);
        let local = NsPerCycle(RATE.0 + RATE.0 / 1_000);
        for (ms, carried) in [(10, 40_000), (50, 0), (90, -40_000)] {
            let cycles = ms * 1_000_000;
            let seen = reading(1_000 + cycles, 5_000_000_007 + cycles, 20);
            let phase = line.phase(&seen, local);
            assert!(phase.abs_diff(7 + carried) <= 1, "{phase} at {ms} ms");
        }
    }

    #[test]
    fn the_last_bin_of_a_counter_has_a_phase() {
        let from = u64::MAX - 20_000_000;
        let line = Line::new(&reading(from, 5_000_000_000, 20), RATE);
        let local = NsPerCycle(RATE.0 + RATE.0 / 1_000);
        let seen = reading(from + 10_000_000, 5_010_000_007, 20);
        let phase = line.phase(&seen, local);
        assert!(phase.abs_diff(7 + 40_000) <= 1, "{phase}");
    }
}
