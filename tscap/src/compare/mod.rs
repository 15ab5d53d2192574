//! The experiment of Orosz & Skopkó on any machine: what a stamp costs, and what
//! that does to precision and loss.
//!
//! `programs` and `whole` measure in the kernel, `pair` is where frames are sent
//! for it, `statistics` judges, `schema` is what comes of it and `json` reads it.

mod assemble;
mod bench;
mod capturing;
mod clocks;
mod experiment;
mod json;
mod machine;
#[cfg(test)]
mod made;
mod pair;
mod plan;
mod programs;
pub mod schema;
pub mod statistics;
mod stop;
mod taken;
mod traffic;
mod whole;

use crate::clock::StampSource;

pub use assemble::{Circumstances, assemble};
pub use experiment::{ExperimentError, Place, Results, run};
pub use json::FormatError;
pub use machine::{Ticks, describe};
pub use pair::Pair;
pub use plan::Amount;
pub use programs::{Programs, ProgramsError, Settings};
pub use schema::Comparison;
pub use stop::Stop;
pub use taken::trimmed_mean;
pub use traffic::{Burst, FAST_BYTES, Measured, Traffic};

/// A way to stamp; `None` is the floor, no stamp at all.
pub type Stamp = Option<StampSource>;
