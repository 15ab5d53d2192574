//! How long received packets are between the layers of the network stack, by flow: each layer's
//! program records the key of each packet with a stamp, and sightings with the same key are of
//! one packet.
//!
//! [`Passages`] is pure and tells what became of every sighting; `live` has the programs.

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod flows;
pub mod live;
mod passages;
pub mod schema;

pub use flows::{FlowReports, FlowTable};
pub use passages::{MOST_LAYERS, OwnTime, Passage, Passages, Sighting};
