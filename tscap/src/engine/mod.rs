//! The converter thread: drains the rings, turns raw stamps into wall-clock
//! time in place, and writes straight from the rings.

mod batch;
mod converter;
mod finished;
mod idle;
mod outcome;
mod output;
mod shared;

pub use batch::{Batch, Written};
pub use converter::{Converter, Event, Resolve};
pub use finished::{Finished, Totals};
pub use idle::Idle;
pub use outcome::Outcomes;
pub use output::{Output, OutputError, PreparedFile};
pub use shared::{InterfaceCounts, Observed, Shared};

#[cfg(test)]
mod tests;
