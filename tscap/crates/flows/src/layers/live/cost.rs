//! What the programs of layers cost: the kernel's own statistics, which take two more readings
//! of a clock for each run, are on in turns.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::switch::Switch;
use crate::layers::Passage;
use crate::layers::schema::Cost;
use tscap_base::text::causes::chain;
use tscap_clock::MonoNs;
use tscap_network::bpf::stack::RunCounts;
use tscap_programs::hook::LayerPoint;

/// Statistics are on for so long.
const ON: Duration = Duration::from_millis(200);
/// And off for so long.
const OFF: Duration = Duration::from_millis(1_800);

/// When statistics were on: from, to.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<Vec<(MonoNs, MonoNs)>>>);

impl Turns {
    /// Whether statistics were off while the packet was between its layers.
    pub fn are_off_during(&self, passage: &Passage) -> bool {
        let Some((first, last)) = passage.span() else {
            return true;
        };
        let turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = turns.iter().rev().find(|(from, _)| *from <= last);
        latest.is_none_or(|(_, to)| *to < first)
    }

    fn begin(&self) {
        self.with(|turns| turns.push((MonoNs::now(), MonoNs(u64::MAX))));
    }

    fn end(&self) {
        self.with(|turns| {
            if let Some((_, to)) = turns.last_mut() {
                *to = MonoNs::now();
            }
        });
    }

    fn with(&self, work: impl FnOnce(&mut Vec<(MonoNs, MonoNs)>)) {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The costs so far.
#[derive(Debug)]
pub(super) struct Costs {
    turns: Turns,
    /// `None` where the kernel refused.
    switch: Option<Switch>,
    is_on: bool,
    /// The turn of this began so.
    since: Instant,
    before: Vec<RunCounts>,
    sums: Vec<Sum>,
    /// Why there are none.
    refused: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    turns: u64,
    runs: u64,
    ns: u64,
    least: f64,
    greatest: f64,
}

impl Costs {
    /// With privileges that this thread has now; later it needs none.
    pub fn new(turns: Turns, layers: usize) -> Self {
        let mut costs = Self {
            turns,
            switch: None,
            is_on: false,
            since: Instant::now(),
            before: Vec::new(),
            sums: vec![Sum::default(); layers],
            refused: None,
        };
        match Switch::start() {
            Ok(switch) => costs.switch = Some(switch),
            Err(error) => costs.is_refused(&error),
        }
        costs
    }

    /// Begins or ends a turn if it is time.
    pub fn supervise(&mut self, points: &[LayerPoint]) {
        let is_over = self.since.elapsed() >= if self.is_on { ON } else { OFF };
        if !is_over || self.switch.is_none() {
            return;
        }
        if self.is_on {
            self.end(points);
        } else {
            self.begin(points);
        }
        self.since = Instant::now();
    }

    fn begin(&mut self, points: &[LayerPoint]) {
        self.turns.begin();
        match self.turn(true) {
            Ok(()) => {
                self.is_on = true;
                self.before = counts(points);
            }
            Err(error) => {
                self.is_refused(&error);
                self.turns.end();
            }
        }
    }

    /// Ends the turn, if there is one.
    pub fn end(&mut self, points: &[LayerPoint]) {
        if !std::mem::take(&mut self.is_on) {
            return;
        }
        let after = counts(points);
        if let Err(error) = self.turn(false) {
            self.is_refused(&error);
        }
        self.turns.end();
        let changes = self.before.iter().zip(&after);
        for ((before, after), sum) in changes.zip(&mut self.sums) {
            sum.add(after.ns - before.ns, after.runs - before.runs);
        }
    }

    fn turn(&mut self, on: bool) -> io::Result<()> {
        self.switch
            .as_mut()
            .map_or(Ok(()), |switch| switch.turn(on))
    }

    /// There will be no more turns.
    fn is_refused(&mut self, why: &io::Error) {
        // Statistics are off when it has ended.
        self.switch = None;
        self.refused = Some(chain(why));
    }

    pub fn of_layers(&self) -> impl Iterator<Item = Option<Cost>> {
        self.sums.iter().map(Sum::cost)
    }

    /// Why there are none, or no more of them, if the kernel refused.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

/// A program that the kernel does not tell of has none.
fn counts(points: &[LayerPoint]) -> Vec<RunCounts> {
    let counts = points.iter().map(LayerPoint::run_counts);
    counts.map(Result::unwrap_or_default).collect()
}

impl Sum {
    fn add(&mut self, ns: u64, runs: u64) {
        if runs == 0 {
            return;
        }
        let mean = ns as f64 / runs as f64;
        self.least = if self.turns == 0 {
            mean
        } else {
            self.least.min(mean)
        };
        self.greatest = self.greatest.max(mean);
        self.turns += 1;
        self.runs += runs;
        self.ns += ns;
    }

    fn cost(&self) -> Option<Cost> {
        (self.runs > 0).then(|| Cost {
            turns: self.turns,
            runs: self.runs,
            mean_ns: self.ns as f64 / self.runs as f64,
            least_ns: self.least,
            greatest_ns: self.greatest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::OwnTime;

    #[test]
    fn a_cost_is_the_mean_of_all_runs_and_the_range_of_turns() {
        let mut sum = Sum::default();
        assert_eq!(sum.cost(), None);
        sum.add(3_000, 10);
        sum.add(0, 0);
        sum.add(1_000, 10);
        let cost = sum.cost().expect("it ran");
        assert_eq!((cost.turns, cost.runs), (2, 20));
        assert_eq!(
            [cost.mean_ns, cost.least_ns, cost.greatest_ns],
            [200.0, 100.0, 300.0]
        );
    }

    #[test]
    fn packets_of_a_turn_are_not_timed() {
        let turns = Turns::default();
        turns
            .with(|turns| turns.extend([(MonoNs(10), MonoNs(20)), (MonoNs(50), MonoNs(u64::MAX))]));
        let is_timed = |first, last| {
            let mut passage = Passage::of(0);
            passage.see(1, MonoNs(first), OwnTime::default());
            passage.see(3, MonoNs(last), OwnTime::default());
            turns.are_off_during(&passage)
        };
        for (first, last) in [(1, 9), (21, 49)] {
            assert!(is_timed(first, last), "{first} {last}");
        }
        for (first, last) in [(1, 10), (15, 15), (20, 30), (5, 30), (49, 51), (60, 70)] {
            assert!(!is_timed(first, last), "{first} {last}");
        }
    }
}
