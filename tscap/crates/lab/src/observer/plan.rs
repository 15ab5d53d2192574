//! How much is measured, and about how long it takes.

use std::time::Duration;

/// How much of everything, of each watcher in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Rounds in which every watcher takes its turn.
    pub rounds: u32,
    /// Round trips that are timed.
    pub exchanges: u32,
    /// How long a TCP stream is sent.
    pub stream: Duration,
}

impl Amount {
    /// Less than two minutes. The fewer the rounds, the wider the intervals: they allow for
    /// rounds that correlate.
    pub const QUICK: Self = Self {
        rounds: 16,
        exchanges: 200,
        stream: Duration::from_millis(50),
    };
    /// Less than ten minutes.
    pub const DEFAULT: Self = Self {
        rounds: 60,
        exchanges: 1_000,
        stream: Duration::from_millis(200),
    };

    /// About how long it takes with so many watchers, s.
    pub fn seconds(&self, watchers: usize) -> f64 {
        // A capture begins and ends.
        const TURN: f64 = 0.5;
        const ROUND_TRIP: f64 = 60e-6;
        let turn = TURN + f64::from(self.exchanges) * ROUND_TRIP + self.stream.as_secs_f64();
        f64::from(self.rounds) * watchers as f64 * turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_over_in_a_quarter_of_an_hour() {
        assert!(Amount::QUICK.seconds(10) < 120.0);
        assert!((60.0..900.0).contains(&Amount::DEFAULT.seconds(10)));
    }
}
