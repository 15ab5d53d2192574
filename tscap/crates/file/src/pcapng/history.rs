//! The clock of a whole capture, gathered from all of its statistics.

use super::custom::ClockOption;
use super::record::ReadError;
use tscap_clock::{History, Impossible};

/// Gathers what statistics blocks say, in the file's order.
#[derive(Debug, Default)]
pub struct Gatherer {
    /// Of the first statistics.
    interface: u32,
    history: Option<History>,
}

impl Gatherer {
    /// Takes in the clock of one block of this interface. Those of several interfaces
    /// must be of one clock.
    ///
    /// # Errors
    /// What no clock can have been, another clock, and what has no history.
    pub fn take(&mut self, interface: u32, clock: &ClockOption) -> Result<(), ReadError> {
        let has_history = !clock.segments.is_empty() || clock.segments_left_out > 0;
        if !has_history && clock.samples.is_empty() {
            return Err(ReadError::NoHistory);
        }
        let history = self.history.get_or_insert_with(|| {
            self.interface = interface;
            History::new(clock.stamp.source)
        });
        // Another interface's block of the same moment has the same samples.
        let is_first = interface == self.interface;
        let is_same = is_first || history.samples.ends_with(&clock.samples);
        if clock.stamp.source != history.source || !is_same {
            return Err(ReadError::OtherClock);
        }
        let rate = clock.counter.map(|counter| counter.ns_per_cycle_2_58);
        // Where no sample was taken since, the latest is there again.
        let samples = if history.samples.ends_with(&clock.samples) {
            &[]
        } else {
            &clock.samples[..]
        };
        history.left_out += clock.segments_left_out;
        history.take(rate, &clock.segments, samples.iter().copied())?;
        Ok(())
    }

    /// All of it; `None` if there was none.
    ///
    /// # Errors
    /// What no clock can have been.
    pub fn history(self) -> Result<Option<History>, Impossible> {
        self.history.map(History::checked).transpose()
    }
}
