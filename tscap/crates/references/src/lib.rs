//! Clocks beside the host's: NTP servers, PTP devices and network cards, the clock that follows one
//! of them, and the log that a clock's readings are kept in.

mod clock_error;
mod combined;
mod counter_trend;
mod device_drift;
mod followed;
pub mod log;
mod nic;
pub mod ntp;
mod peer;
mod phc;
mod summary;

pub use clock_error::{ClockError, Look, clock_error};
pub use combined::{Combined, Consensus, Vote};
pub use counter_trend::{CounterTrend, Point, Sighting, sight};
pub use device_drift::{DeviceDrift, known_by, stamp_one_second_later};
pub use followed::{Followed, FollowedClocks, Known};
pub use nic::{NicClock, NicConversion, NicReading};
pub use peer::{PeerClock, PeerVerdict};
pub use phc::{PhcBase, PhcClock, PhcOutcome, PhcSighting, PhcStatus};
pub use summary::{ReferenceMember, ReferenceReport, ReferenceState, ReferenceSummary};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
