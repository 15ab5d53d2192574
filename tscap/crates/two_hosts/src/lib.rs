//! One-way delay between two hosts.
//!
//! - `alignment`: how far the clocks of two hosts are apart, with a bound;
//! - `files`: the same of two captures, by the packets that both have;
//! - `reflector`: the session-reflector;
//! - `sender`: the session-sender;
//! - `serve`: the reflector at an interface, with the programs that stamp for it.

mod alignment;
pub mod files;
pub mod reflector;
pub mod sender;
mod serve;
mod variation;

pub use serve::{ServePlan, Served, Serving};

pub use alignment::{AlignBy, Aligned, Alignment, Exchange, OneWay};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
