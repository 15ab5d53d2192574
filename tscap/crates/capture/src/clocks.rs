//! The clocks that stamps are held against: the host's, or those of a reference.

use super::plan::Capture;
use tscap_clock::{
    Bracket, CrossTimestamp, FollowedBounds, HostClocks, MonoNs, Reference, StampSource,
};
use tscap_references::FollowedClocks;

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each writer")]
pub(super) enum Clocks {
    Host(HostClocks),
    Followed(FollowedClocks),
}

impl Clocks {
    /// As asked for, for stamps of `source`.
    pub fn of(plan: &Capture, source: StampSource) -> Self {
        match &plan.reference {
            Some(followed) => Self::Followed(FollowedClocks::new(followed)),
            None => Self::Host(HostClocks::new(source)),
        }
    }
}

impl Reference for Clocks {
    fn read(&mut self) -> CrossTimestamp {
        match self {
            Self::Host(clocks) => clocks.read(),
            Self::Followed(clocks) => clocks.read(),
        }
    }

    fn raw(&mut self) -> Option<Bracket> {
        match self {
            Self::Host(clocks) => Reference::<CrossTimestamp>::raw(clocks),
            Self::Followed(clocks) => Reference::<CrossTimestamp>::raw(clocks),
        }
    }

    fn was_set(&mut self) -> bool {
        match self {
            Self::Host(clocks) => Reference::<CrossTimestamp>::was_set(clocks),
            Self::Followed(clocks) => Reference::<CrossTimestamp>::was_set(clocks),
        }
    }

    fn followed(&mut self) -> Option<FollowedBounds> {
        match self {
            Self::Host(_) => None,
            Self::Followed(clocks) => Reference::<CrossTimestamp>::followed(clocks),
        }
    }
}

impl Reference<MonoNs> for Clocks {
    fn read(&mut self) -> MonoNs {
        match self {
            Self::Host(clocks) => clocks.read(),
            Self::Followed(clocks) => clocks.read(),
        }
    }
}
