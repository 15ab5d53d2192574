//! The delay of what lies between two places, packet by packet.

#[cfg(test)]
pub(crate) mod fixtures;
pub mod schema;
mod sighting;
pub mod stress;

pub use sighting::{At, MOST_EXITS, Sighting};
