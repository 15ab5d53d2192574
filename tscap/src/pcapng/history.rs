//! The clock of a whole capture, gathered from all of its statistics.

use super::custom::ClockOption;
use super::reader::ReadError;
use crate::clock::{History, Segment, StampSource};

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
    /// What no clock can have been, and another clock.
    pub fn take(&mut self, interface: u32, clock: &ClockOption) -> Result<(), ReadError> {
        let rate = clock.counter.map(|counter| counter.ns_per_cycle_2_58);
        if rate.is_some_and(|rate| !rate.is_possible()) {
            return Err(ReadError::Clock("a counter of an impossible rate"));
        }
        let mut bounds = clock.segments.iter().map(|segment| segment.mono_to_real);
        if bounds.any(|bounds| bounds.low > bounds.high) {
            return Err(ReadError::Clock("an offset above its upper bound"));
        }
        let history = self.history.get_or_insert_with(|| {
            self.interface = interface;
            History {
                source: clock.stamp.source,
                rate: None,
                segments: Vec::new(),
                samples: Vec::new(),
            }
        });
        // Another interface's block of the same moment has the same samples.
        let is_first = interface == self.interface;
        let is_same = is_first || history.samples.ends_with(&clock.samples);
        if clock.stamp.source != history.source || !is_same {
            return Err(ReadError::OtherClock);
        }
        if clock.stamp.source == StampSource::Tsc {
            history.rate = rate.or(history.rate);
        }
        for segment in &clock.segments {
            put(&mut history.segments, segment);
        }
        // Where no sample was taken since, the latest is there again.
        if !history.samples.ends_with(&clock.samples) {
            history.samples.extend(&clock.samples);
        }
        Ok(())
    }

    /// All of it; `None` if there was none.
    pub fn history(self) -> Option<History> {
        self.history
    }
}

/// The latest segment is written again when it has grown.
fn put(segments: &mut Vec<Segment>, segment: &Segment) {
    match segments.iter_mut().find(|known| known.from == segment.from) {
        Some(known) => *known = *segment,
        None => segments.push(*segment),
    }
}
