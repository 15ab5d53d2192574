//! What rounds say of their mean.

use super::correlated::MeanDistribution;
use tscap_statistics::mean;

/// Fewer rounds than this can't tell noise from a slow drift.
pub(super) const FEWEST: usize = 5;
/// Neighbours that correlate more than this are beyond what the interval allows for:
/// it is withheld.
pub(super) const MOST_LAG_1: f64 = 0.9;
/// Outside of an interval of one standard deviation to either side.
const OUTSIDE_SD: f64 = 0.3173;
/// A normal value is less than so many standard deviations with a probability of 80 %.
const POWER_SDS: f64 = 0.8416;

/// The mean of rounds in the order of time.
pub(super) struct RoundsMean {
    pub mean: f64,
    /// Lag-1 correlation; `None` of fewer than three rounds and of such that never
    /// vary.
    pub lag_1: Option<f64>,
    /// `None` of fewer than five rounds, and if `lag_1` is above 0.9.
    pub interval: Option<[f64; 2]>,
    /// A true mean so far beyond a limit gives an interval that is beyond it in 80 of
    /// 100 runs like this.
    pub reach: Option<f64>,
}

impl RoundsMean {
    /// With an interval that misses the true mean with the probability `misses`, for
    /// rounds that correlate by up to 0.97; `None` without a round. Rounds are known to
    /// ± `known_to`, which widens the interval on either side.
    pub fn of(rounds: &[f64], misses: f64, known_to: f64) -> Option<Self> {
        if rounds.is_empty() {
            return None;
        }
        let mean = mean(rounds);
        let lag_1 = lag_1(rounds, mean);
        let is_bearable = lag_1.is_none_or(|lag_1| lag_1 <= MOST_LAG_1);
        let ends = (rounds.len() >= FEWEST && is_bearable).then(|| {
            let of = MeanDistribution::of(rounds);
            let interval = |outside| of.as_ref().map_or([mean; 2], |of| of.interval(outside));
            [misses, OUTSIDE_SD].map(interval)
        });
        let reach =
            ends.map(|[interval, sd]| half_width(interval) + known_to + POWER_SDS * half_width(sd));
        let interval = ends.map(|[[low, high], _]| [low - known_to, high + known_to]);
        Some(Self {
            mean,
            lag_1,
            interval,
            reach,
        })
    }
}

/// The 95 % interval of the mean of rounds in the order of time, which may correlate; `None`
/// of fewer than five, and where they correlate too much.
pub fn mean_interval(rounds: &[f64]) -> Option<[f64; 2]> {
    RoundsMean::of(rounds, 0.05, 0.0)?.interval
}

fn half_width([low, high]: [f64; 2]) -> f64 {
    (high - low) / 2.0
}

/// Box & Jenkins, Time Series Analysis, equation 2.1.13.
fn lag_1(rounds: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = rounds.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = rounds.windows(2);
    let products: f64 = pairs.map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let varies = squares.sqrt() > 1e-12 * mean.abs().max(1.0);
    (rounds.len() > 2 && varies).then(|| products / squares)
}

#[cfg(test)]
mod tests;
