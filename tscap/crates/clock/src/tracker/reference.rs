//! Where the clock that is tracked follows a reference: how far it was off that.

use super::Tracker;
use crate::{FollowedBounds, ReferenceBounds};

impl Tracker {
    /// Takes in how far the clock was off its reference since the reading before.
    pub fn observe_reference(&mut self, followed: FollowedBounds) {
        let FollowedBounds { bounds, doubt_ns } = followed;
        self.kept
            .reference_bound(bounds.bound_ns.saturating_add(doubt_ns));
        let before = self.reference.map_or(bounds, |it| it.bounds);
        // What was in doubt is either in these bounds by now, or was wrong.
        self.reference = Some(FollowedBounds {
            bounds: before.or_greater(bounds),
            doubt_ns,
        });
    }

    /// The greatest bounds so far, which hold for all stamps; `None` where the clock is the
    /// host's own.
    pub fn reference(&self) -> Option<ReferenceBounds> {
        let FollowedBounds { bounds, doubt_ns } = self.reference?;
        Some(ReferenceBounds {
            bound_ns: bounds.bound_ns.saturating_add(doubt_ns),
            ..bounds
        })
    }
}
