//! Results as people read them. Pure: nothing here touches the system.
//!
//! Each kind of result gives a [`Document`] of sections, which is told as text on a terminal
//! and as a page in a browser: a comparison of stamps, a `sweep` of loss, a `delay`, an
//! observation by an `observer`, flows of `qos`, `layers`, `streams` of `tscap gen`, `counters`, a `clock`'s log, and what
//! `papers` measured. [`saved`] has the list of those that are read back from JSON.

mod chart;
mod clock;
mod compare;
mod counters;
mod delay;
mod density;
mod document;
mod facts;
mod figure;
mod glossary;
mod layers;
mod layout;
mod observer;
mod papers;
mod qos;
pub mod saved;
mod shares;
mod sweep;
mod table;
mod words;

pub use chart::{Axis, Chart, Scale, Series, Shape};
pub use clock::document as clock_document;
pub use delay::document as delay_document;
pub use document::{Document, FLUSH, INDENTED, Indent, Section, Shown};
pub use figure::Figure;
pub use layers::lines as layers_lines;
pub use layout::Layout;
pub use papers::Papers;
pub use qos::flow_lines;
pub use table::Table;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
