//! The account of a capture: every frame seen is written, or counted under exactly one
//! [`Outcome`].
//!
//! The outcomes are one table (`tscap_common::outcome`). A new one is a line there and the
//! line of code that counts it.

mod counts;
mod directed;
mod order;
mod outcomes;

pub use counts::{
    Counts, HardwareFrames, InterfaceCounts, InterfaceFrames, Observed, ReferenceStanding, Totals,
    Written,
};
pub use directed::Directed;
pub use order::StampOrder;
pub use outcomes::Outcomes;
pub use tscap_common::hook::Direction;
pub use tscap_common::outcome::{Outcome, Place};
