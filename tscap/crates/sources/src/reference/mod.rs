//! References beside the host's clock: NTP servers and PTP hardware clocks, and a follower of some
//! of them for the times of a capture or a measurement.
//!
//! Nothing here runs by itself: who owns a [`Follower`] calls `turn` when it is due.

mod device;
mod follower;
mod member;

use std::path::PathBuf;

pub use device::{Device, LookOutcome};
pub use follower::Follower;

use crate::ntp::NtpPlan;

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferencePlan {
    /// A PTP hardware clock.
    Device(PathBuf),
    /// NTP servers.
    Ntp(NtpPlan),
}

impl std::fmt::Display for ReferencePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(path) => path.display().fmt(f),
            Self::Ntp(NtpPlan::Ask { server, .. }) => write!(f, "ntp:{server}"),
            Self::Ntp(NtpPlan::Passive { .. }) => f.write_str("ntp:passive"),
        }
    }
}
