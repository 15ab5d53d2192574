//! A figure over several rounds.

use serde::Serialize;

/// Median and extremes of what the rounds gave, and all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Median (of an even number: the mean of the two in the middle).
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// By round.
    pub rounds: Vec<f64>,
}

impl Spread {
    /// Sums up what the rounds gave; all zero if there were none.
    pub fn of(rounds: Vec<f64>) -> Self {
        let mut sorted = rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let middle = sorted.len() / 2;
        Self {
            median: (sorted[(sorted.len() - 1) / 2] + sorted[middle]) / 2.0,
            min: *min,
            max: *max,
            rounds,
        }
    }

    /// The figure in another unit.
    pub fn map(&self, convert: impl Fn(f64) -> f64) -> Self {
        Self::of(self.rounds.iter().map(|figure| convert(*figure)).collect())
    }

    /// Combines two figures of the same rounds, round by round.
    pub fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let pairs = self.rounds.iter().zip(&other.rounds);
        Self::of(pairs.map(|(a, b)| combine(*a, *b)).collect())
    }
}
