//! Where the clock that is tracked follows a reference: how far it was off that.

use super::Tracker;
use crate::capturing::clock::ReferenceBounds;

impl Tracker {
    /// Takes in how far the clock was off its reference at the latest reading.
    pub fn observe_reference(&mut self, bounds: ReferenceBounds) {
        self.kept.reference_bound(bounds.bound_ns);
        let before = self.reference.unwrap_or(bounds);
        self.reference = Some(before.or_greater(bounds));
    }

    /// The greatest bounds so far, which hold for all stamps; `None` where the clock is the
    /// host's own.
    pub fn reference(&self) -> Option<ReferenceBounds> {
        self.reference
    }
}
