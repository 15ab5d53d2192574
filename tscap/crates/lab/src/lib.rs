//! Experiments: what stamps cost, where frames are lost, what counters are like.

pub mod compare;
pub mod counters;
pub mod loss;
pub mod observer;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
