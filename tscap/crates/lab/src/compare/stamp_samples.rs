//! What one stamp gave over the rounds.

use std::ops::AddAssign;

use tscap_common::compare::Sample;

use super::causes::Trace;
use super::clocks::Clocks;
use super::schema::LossPoint;
use super::{RoundItem, Stamp};
use tscap_statistics::trimmed_mean;

/// Frames sent for it, and those that were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    pub sent: u64,
    pub received: u64,
    /// Came in on another CPU: not measured.
    pub elsewhere: u64,
    /// Measured without a stamp: the clock could not be read.
    pub unstamped: u64,
}

impl AddAssign for FrameCounts {
    fn add_assign(&mut self, more: Self) {
        self.sent += more.sent;
        self.received += more.received;
        self.elsewhere += more.elsewhere;
        self.unstamped += more.unstamped;
    }
}

/// Everything of one stamp.
#[derive(Debug)]
pub struct StampSamples {
    /// Which, and how; with interrupts off only `read_ns`, `costs` and `fast` are taken.
    pub turn: RoundItem,
    /// One read, by round.
    pub read_ns: Vec<f64>,
    /// The whole program, by round.
    pub program_ns: Vec<f64>,
    /// Second checkpoint less first, of every frame.
    pub costs: Vec<i64>,
    /// What happened during each of these frames; empty if nobody knows.
    pub traces: Vec<Trace>,
    /// Where each round ends in `costs`.
    pub ends: Vec<usize>,
    /// Frames of the fast traffic.
    pub fast: FrameCounts,
    /// The paper's patterns.
    pub patterns: [PatternSamples; 2],
    /// Highest rates without loss.
    pub lossless_rate: Vec<f64>,
    /// Rounds in which no such rate was found.
    pub rates_with_loss: u32,
    /// Loss, by size and by gap.
    pub loss: Vec<LossPoint>,
}

impl StampSamples {
    pub fn new(turn: impl Into<RoundItem>) -> Self {
        Self {
            turn: turn.into(),
            read_ns: Vec::new(),
            program_ns: Vec::new(),
            costs: Vec::new(),
            traces: Vec::new(),
            ends: Vec::new(),
            fast: FrameCounts::default(),
            patterns: Default::default(),
            lossless_rate: Vec::new(),
            rates_with_loss: 0,
            loss: Vec::new(),
        }
    }

    /// Takes in the costs of a round.
    pub fn round(&mut self, costs: impl IntoIterator<Item = u64>) {
        let costs = costs
            .into_iter()
            .map(|cost| i64::try_from(cost).unwrap_or(i64::MAX));
        self.costs.extend(costs);
        self.ends.push(self.costs.len());
    }

    /// Takes in what came later: whole rounds, or whole points.
    pub fn append(&mut self, later: Self) {
        let before = self.costs.len();
        self.read_ns.extend(later.read_ns);
        self.program_ns.extend(later.program_ns);
        self.costs.extend(later.costs);
        self.traces.extend(later.traces);
        self.ends.extend(later.ends.iter().map(|end| before + end));
        self.fast += later.fast;
        for (pattern, later) in self.patterns.iter_mut().zip(later.patterns) {
            pattern.append(later);
        }
        self.lossless_rate.extend(later.lossless_rate);
        self.rates_with_loss += later.rates_with_loss;
        self.loss.extend(later.loss);
    }

    /// The costs by round.
    pub fn rounds(&self) -> impl Iterator<Item = &[i64]> {
        rounds(&self.costs, &self.ends)
    }

    /// The trimmed mean of each round.
    pub fn means(&self) -> Vec<f64> {
        self.rounds().map(trimmed_mean).collect()
    }
}

/// The values of each round, given where each ends.
fn rounds<'a>(values: &'a [i64], ends: &'a [usize]) -> impl Iterator<Item = &'a [i64]> + Clone {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, end)| &values[start..*end])
}

/// The frames of one pattern.
#[derive(Debug, Default)]
pub struct PatternSamples {
    pub counts: FrameCounts,
    /// Second checkpoint less first.
    pub costs: Vec<i64>,
    /// Where each round ends in `costs`.
    pub ends: Vec<usize>,
    /// Receive stamp less send stamp.
    pub delays: Vec<i64>,
    /// Inter-arrival times of frames sent one after the other.
    pub inter_arrivals: Vec<i64>,
    /// |inter-arrival − inter-send| of these.
    pub interval_errors: Vec<i64>,
    /// The cost of the later of the two.
    pub error_costs: Vec<i64>,
    /// Bursts during which the sender's TSC moved: no delays, no intervals.
    pub moved: u32,
}

impl PatternSamples {
    fn append(&mut self, later: Self) {
        self.counts += later.counts;
        let before = self.costs.len();
        self.costs.extend(later.costs);
        self.ends.extend(later.ends.iter().map(|end| before + end));
        self.delays.extend(later.delays);
        self.inter_arrivals.extend(later.inter_arrivals);
        self.interval_errors.extend(later.interval_errors);
        self.error_costs.extend(later.error_costs);
        self.moved += later.moved;
    }

    /// Ends a round: what follows is of another one.
    pub fn end_round(&mut self) {
        self.ends.push(self.costs.len());
    }

    /// The costs by round.
    pub fn rounds(&self) -> impl Iterator<Item = &[i64]> + Clone {
        rounds(&self.costs, &self.ends)
    }

    /// Takes in a burst's samples, in the order of the frames; without clocks the
    /// costs alone.
    pub fn take(&mut self, stamp: Stamp, run: u16, samples: &[Sample], clocks: Option<&Clocks>) {
        debug_assert!(
            samples
                .iter()
                .all(|sample| sample.frame >> 48 == u64::from(run))
        );
        let cost = |sample: &Sample| i64::try_from(sample.cost_ns).unwrap_or(i64::MAX);
        self.costs.extend(samples.iter().map(cost));
        let (Some(path), Some(clocks)) = (stamp, clocks) else {
            return;
        };
        let source = path.source();
        self.delays
            .extend(samples.iter().map(|sample| clocks.delay_ns(source, sample)));
        for pair in samples.windows(2) {
            let [from, to] = pair else { continue };
            if to.frame != from.frame + 1 {
                continue;
            }
            let arrival = clocks.inter_arrival_ns(source, from, to);
            let send = clocks.inter_send_ns(source, from, to);
            self.inter_arrivals.push(arrival);
            let error = arrival.abs_diff(send);
            self.interval_errors
                .push(i64::try_from(error).unwrap_or(i64::MAX));
            self.error_costs.push(cost(to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_each_other() {
        let of = |costs: &[u64]| {
            let mut taken = StampSamples::new(None);
            taken.round(costs.iter().copied());
            taken.fast.sent = 5;
            taken.patterns[1].delays.push(7);
            taken.patterns[1].costs.extend([costs[0] as i64, 9]);
            taken.patterns[1].end_round();
            taken
        };
        let mut taken = of(&[1, 2]);
        taken.append(of(&[3]));
        taken.append(of(&[4, 5]));
        let rounds: Vec<_> = taken.rounds().collect();
        assert_eq!(rounds, [&[1, 2][..], &[3], &[4, 5]]);
        assert_eq!((taken.fast.sent, taken.fast.received), (15, 0));
        assert_eq!(taken.patterns[1].delays, [7; 3]);
        let rounds: Vec<_> = taken.patterns[1].rounds().collect();
        assert_eq!(rounds, [[1, 9], [3, 9], [4, 9]]);
    }
}
