//! A figure over several rounds.

use serde::Serialize;

use super::median;

/// Median and extremes of what the rounds gave, and all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Median of the rounds; of an even number the mean of the two in the middle.
    pub median: f64,
    /// Least of the rounds.
    pub min: f64,
    /// Greatest of the rounds.
    pub max: f64,
    /// What each round gave, in the order of the rounds.
    pub rounds: Vec<f64>,
}

impl Spread {
    /// Sums up what the rounds gave; all zero if there were none.
    pub fn of(rounds: Vec<f64>) -> Self {
        let Some(median) = median(&rounds) else {
            return Self::default();
        };
        Self {
            median,
            min: rounds.iter().copied().fold(f64::INFINITY, f64::min),
            max: rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max),
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
