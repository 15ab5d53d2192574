//! The experiment of Orosz & Skopkó on any machine: what a stamp costs, and what
//! that does to precision and loss.
//!
//! `programs` and `whole` measure in the kernel, `pair` is where frames are sent
//! for it, `statistics` judges, `schema` is what comes of it and `json` reads it.

mod json;
#[cfg(test)]
mod made;
mod pair;
mod programs;
pub mod schema;
pub mod statistics;
mod whole;

use crate::clock::StampSource;

pub use json::FormatError;

/// A way to stamp; `None` is the floor, no stamp at all.
pub type Stamp = Option<StampSource>;
