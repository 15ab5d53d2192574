//! The delay of what lies between two places, packet by packet: sightings are matched
//! ([`Matcher`]), the delays of those that match are gathered ([`DelayRecorder`]). Pure.

mod certificate;
mod matcher;
mod recorder;
pub mod schema;
mod sighting;

pub use matcher::{Matcher, MatcherOptions, Passed};
pub use recorder::{DelayRecorder, Latest, Matched};
pub use sighting::{At, MOST_EXITS, Sighting};
