//! A comparison for people: [`text`] for a terminal, [`page`] for a browser. Pure:
//! nothing here touches the system.
//!
//! `tables` and `figures` choose what is shown, `table` and `chart` draw it; these,
//! and [`document`], draw other reports too: `sweep` those of loss, `delay` those of
//! delays, `qos` those of flows, `layers` those of layers, `streams` those of
//! `tscap gen`, `clock` those of a clock's log, `counters` those of
//! counters.

mod chart;
mod clock;
mod counters;
mod delay;
mod density;
mod figures;
mod glossary;
mod html;
mod layers;
mod layout;
mod observer;
mod paper;
mod papers;
mod qos;
pub mod saved;
mod streams;
mod sweep;
mod table;
mod tables;
mod text;
mod words;

pub use chart::{Axis, Chart, Scale, Series, Shape};
pub use clock::{clock_page, clock_text};
pub use counters::{counters_page, counters_text};
pub use delay::{delay_page, delay_text};
pub use figures::Figure;
pub use html::{document, page};
pub use layers::{layers_lines, layers_page, layers_text};
pub use layout::Layout;
pub use observer::{observer_page, observer_text};
pub use papers::{Papers, papers_page, papers_text};
pub use qos::{qos_lines, qos_page, qos_text};
pub use streams::streams_text;
pub use sweep::{sweep_page, sweep_text};
pub use table::{Table, markup};
pub use text::text;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
