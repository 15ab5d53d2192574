//! The delay of what lies between two places, packet by packet: sightings are matched
//! ([`Matcher`]), the delays of those that match are gathered ([`DelayRecorder`]). A capture has
//! sightings too ([`measure_file`]).

mod certificate;
mod file;
mod matcher;
mod recorder;
pub mod schema;
mod sighting;

pub use file::{FileError, FilePlan, FileResult, measure_file};
pub use matcher::{Matcher, MatcherOptions, Passed};
pub use recorder::{DelayRecorder, Latest, Matched};
pub use sighting::{At, MOST_EXITS, Sighting};
