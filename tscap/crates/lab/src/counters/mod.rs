//! What the counters of a machine are like: the characteristics that a clock asks of them, as the
//! paper on RADclock has them (Ridoux, Veitch and Broomhead: The Case for Feed-Forward Clock
//! Synchronization, sections IV and V): frequency, width, what a reading takes, and how they keep their rate, idle
//! and under loads.
//!
//! `counter` lists them, `readers` and `programs` read them, `access` is what a reading takes,
//! `rates` is how they go by each other; `phase` and `stress` are the loads,
//! `experiment` does it all, `reference` judges what rates are by, `schema` is what comes of it.

mod access;
mod assemble;
mod counter;
mod experiment;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod phase;
mod programs;
mod rates;
mod readers;
mod reference;
pub mod schema;
mod stress;

pub use access::Quartiles;
pub use assemble::assemble;
pub use counter::Counter;
pub use experiment::{CountersError, Request, Results, run};
pub use phase::Stress;
pub use schema::Characteristics;
