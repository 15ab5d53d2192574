//! How far the host's clock may be off UTC: every source on the machine that says so, each with
//! the parts of its bound, and which of them is used. Nothing here changes a clock.

mod bound;
mod bytes;
mod chrony;
mod clockbound;
mod disruption;
mod host_clock;
mod phc;
mod ptp4l;
mod reader;
mod shared;
mod vmclock;
mod watched;
mod words;

pub use bound::{ClockBoundStatus, Leap, Parts, UtcBound, UtcBounds, UtcInterval, UtcSource};
pub use disruption::DisruptionWatch;
pub use reader::{Roots, UtcReader};
pub use shared::SharedUtcBound;
pub use watched::Watched;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
