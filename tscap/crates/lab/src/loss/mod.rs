//! Skopkó's experiment on any machine: where a capture loses frames, against their
//! size, the gap between them, the snaplen and the buffers; and what a model predicts
//! of it.
//!
//! `disk` measures what a disk takes without a capture; `answer` and `limits` say from all
//! this what fits, and who loses first.
//!
//! `grid` has the points and `experiment` measures them on a `bed`; `calibrate` makes
//! the runs from which `fit` finds the costs by which `model` predicts; `schema` is
//! what comes of it.

mod accuracy;
mod answer;
mod assemble;
mod bed;
mod calibrate;
mod disk;
mod error;
mod experiment;
mod fit;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod grid;
mod limits;
pub mod model;
pub mod schema;
mod slow;

pub use accuracy::accuracy;
pub use answer::{Answer, Question, answer};
pub use assemble::assemble;
pub use bed::Placement;
pub use calibrate::SLOW_RING;
pub use disk::{Disk, DiskError, DiskRate};
pub use error::LossError;
pub use experiment::{Experiment, Results, Setting, captures, run};
pub use fit::{Probe, Probes};
pub use grid::{Arrival, Grid, GridPoint, LONGEST_FRAME, Pace};
pub use limits::{FrameLimits, Limits, Needs, PauseRing, Stage};
pub use schema::Sweep;
