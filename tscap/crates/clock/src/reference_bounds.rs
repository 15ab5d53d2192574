//! How far a clock that follows a reference is off.

use serde::{Deserialize, Serialize};

/// How far a clock that follows a reference is off that, and that off UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceBounds {
    /// Greatest error of the clock against the reference, ns.
    pub bound_ns: u64,
    /// Greatest error of the reference against UTC, by its own account, ns; absent where it
    /// gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_bound_ns: Option<u64>,
}

impl ReferenceBounds {
    /// Against UTC, ns.
    pub fn utc_ns(&self) -> Option<u64> {
        Some(self.bound_ns.saturating_add(self.own_bound_ns?))
    }

    /// The greater of both.
    #[must_use]
    pub fn or_greater(self, other: Self) -> Self {
        let own = self.own_bound_ns.zip(other.own_bound_ns);
        Self {
            bound_ns: self.bound_ns.max(other.bound_ns),
            own_bound_ns: own.map(|(one, other)| one.max(other)),
        }
    }
}

/// How far a clock that follows a reference was off it since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedBounds {
    /// The greatest, as far as the reference is believed.
    pub bounds: ReferenceBounds,
    /// How much more it is if the reference was set and is not believed yet, ns.
    pub doubt_ns: u64,
}

impl FollowedBounds {
    /// Against UTC, ns, whether the reference was set or not.
    pub fn utc_ns(self) -> Option<u64> {
        Some(self.bounds.utc_ns()?.saturating_add(self.doubt_ns))
    }
}
