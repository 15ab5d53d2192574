//! The delay of what lies between two places, packet by packet.

pub mod schema;
mod sighting;

pub use sighting::{At, MOST_EXITS, Sighting};
