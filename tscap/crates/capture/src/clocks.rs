//! The clocks that stamps are held against: the host's, or those of a reference.

use tscap_clock::{
    Bracket, CrossTimestamp, FollowedBounds, HostClocks, MonoNs, Reference, StampSource,
};
use tscap_references::{Followed, FollowedClocks};

/// The clocks that stamps are held against.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each thread that converts"
)]
pub enum Clocks {
    /// This host's.
    Host(HostClocks),
    /// Those of a reference.
    Followed(FollowedClocks),
}

impl Clocks {
    /// Those of the reference if there is one, else the host's, for stamps of `source`.
    pub fn of(reference: Option<&Followed>, source: StampSource) -> Self {
        match reference {
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
