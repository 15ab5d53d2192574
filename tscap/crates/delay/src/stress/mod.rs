//! What goes on beside a measurement of delays: the paper's load on CPUs, and its parallel
//! traffic.

mod paper;
mod parallel;

pub use paper::{BUSY, CpuUse, PROFILE, PaperLoad, Phase};
pub use parallel::{BYTES, ParallelError, ParallelReport, ParallelTraffic};
