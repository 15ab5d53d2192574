//! Experiments: what stamps cost, where frames are lost, what counters are like.

pub mod compare;
pub mod counters;
mod early_end;
pub mod loss;
pub mod observer;

pub use early_end::EarlyEnd;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
