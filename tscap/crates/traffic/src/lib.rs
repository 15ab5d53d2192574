//! The frame generator, and captures under load, also by other programs.

pub mod generator;
pub mod load;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
