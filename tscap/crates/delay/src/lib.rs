//! The delay of what lies between two places, packet by packet: sightings are matched
//! ([`Matcher`]), and the delays of those that match are gathered ([`DelayRecorder`]). Sightings
//! are those of a capture (`file`) or of programs that work now (`live`).

mod certificate;
pub mod file;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod live;
mod matcher;
pub mod packets;
mod recorder;
pub mod schema;
mod sighting;
pub mod stress;
mod worst;

pub use matcher::{Matcher, MatcherOptions, Passed};
pub use recorder::{DelayRecorder, Latest, Matched};
pub use sighting::{MOST_EXITS, SeenAt, Sighting};
pub use worst::{Packet, Worst};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
