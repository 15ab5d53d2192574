//! The experiment of Orosz & Skopkó on any machine: what a stamp costs, and what
//! that does to precision and loss.
//!
//! `programs` and `whole` measure in the kernel, `statistics` judges, `schema` is
//! what comes of it and `saved` reads it; what sends and captures is in
//! [`tscap_traffic::load`].

mod assemble;
mod bed;
mod causes;
mod clocks;
mod experiment;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod interrupts;
mod kernel_stamp;
mod loss_bed;
mod plan;
mod prepare;
mod programs;
mod request;
pub mod schema;
mod stamp_samples;
pub mod statistics;
mod warnings;
mod whole_program;

use tscap_clock::StampPath;

pub use assemble::{Conditions, assemble};
pub use experiment::{Results, run};
pub use plan::Amount;
pub use programs::{Measured, Programs, ProgramsError, Settings};
pub use request::{ExperimentError, FrameSource, Request};
pub use schema::Comparison;

/// A way to stamp; `None` is the floor, no stamp at all.
pub type Stamp = Option<StampPath>;

/// What a turn of a round measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundItem {
    /// The stamp.
    pub stamp: Stamp,
    /// Whether the CPU's interrupts are off around it.
    pub interrupts_off: bool,
}

impl From<Stamp> for RoundItem {
    fn from(stamp: Stamp) -> Self {
        Self {
            stamp,
            interrupts_off: false,
        }
    }
}

impl From<StampPath> for RoundItem {
    fn from(path: StampPath) -> Self {
        Some(path).into()
    }
}

impl RoundItem {
    /// What tells turns apart.
    fn name(self) -> String {
        let stamp = self.stamp.map_or("none", StampPath::name);
        let how = if self.interrupts_off {
            " with interrupts off"
        } else {
            ""
        };
        format!("{stamp}{how}")
    }
}
