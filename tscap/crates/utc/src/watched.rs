//! Clocks of which is known when their counter was disrupted.

use crate::disruption::DisruptionWatch;
use tscap_clock::{Bracket, FollowedBounds, Reference};

/// Clocks, and what tells of disruptions of their counter: as if somebody had set the clock, so that
/// stamps since the reading before are ambiguous whatever the next reading shows.
#[derive(Clone, Debug)]
pub struct Watched<R> {
    clocks: R,
    disruptions: Option<DisruptionWatch>,
}

impl<R> Watched<R> {
    /// Of these clocks, where the hypervisor tells of disruptions.
    pub fn new(clocks: R, disruptions: Option<DisruptionWatch>) -> Self {
        Self {
            clocks,
            disruptions,
        }
    }
}

impl<T, R: Reference<T>> Reference<T> for Watched<R> {
    fn read(&mut self) -> T {
        self.clocks.read()
    }

    fn raw(&mut self) -> Option<Bracket> {
        self.clocks.raw()
    }

    fn was_set(&mut self) -> bool {
        let was_disrupted = self.disruptions.as_mut();
        let was_disrupted = was_disrupted.is_some_and(DisruptionWatch::was_disrupted);
        self.clocks.was_set() || was_disrupted
    }

    fn followed(&mut self) -> Option<FollowedBounds> {
        self.clocks.followed()
    }
}

#[cfg(test)]
mod tests;
