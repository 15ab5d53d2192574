//! Results as people read them. Pure: nothing here touches the system.
//!
//! Each kind of result gives a [`Document`](tscap_document::Document) of sections: a comparison of stamps, a `sweep` of loss, a `delay`, an
//! observation by an `observer`, flows of `qos`, `layers`, `streams` of `tscap gen`, `counters`, a `clock`'s log, and what
//! `papers` measured. [`saved`] has the list of those that are read back from JSON.

mod clock;
mod compare;
mod counters;
mod delay;
mod glossary;
mod layers;
mod observer;
mod papers;
mod qos;
pub mod saved;
mod sweep;

pub use clock::document as clock_document;
pub use delay::document as delay_document;
pub use layers::lines as layers_lines;
pub use papers::Papers;
pub use qos::flow_lines;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
