//! The experiment of Orosz & Skopkó on any machine: what a stamp costs, and what
//! that does to precision and loss.
//!
//! `programs` and `whole` measure in the kernel, `statistics` judges, `schema` is
//! what comes of it and `json` reads it; what sends and captures is in
//! [`crate::load`].

mod assemble;
mod bench;
mod clocks;
mod experiment;
mod machine;
#[cfg(test)]
pub(crate) mod made;
mod plan;
mod programs;
pub mod schema;
pub mod statistics;
mod taken;
mod whole;

use crate::clock::StampPath;

pub use assemble::{Circumstances, assemble};
pub use experiment::{ExperimentError, Place, Results, run};
pub use machine::{Ticks, describe};
pub use plan::Amount;
pub use programs::{Measured, Programs, ProgramsError, Settings};
pub use schema::Comparison;
pub use taken::trimmed_mean;

/// A way to stamp; `None` is the floor, no stamp at all.
pub type Stamp = Option<StampPath>;
