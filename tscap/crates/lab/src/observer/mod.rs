//! What a capture does to the traffic that it watches: the round trip and the throughput of
//! programs on both ends of a veth pair, with one capture after the other at the receiving end,
//! and with none.
//!
//! `watcher` is who captures, `peers` are the programs whose traffic passes, `experiment` lets
//! the watchers take turns, `schema` is what comes of it.

mod assemble;
mod experiment;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod peers;
mod plan;
pub mod schema;
mod watcher;

pub use assemble::assemble;
pub use experiment::{ObserverError, Placement, Results, run};
pub use plan::Amount;
pub use schema::Observation;
pub use watcher::Watcher;
