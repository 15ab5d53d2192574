//! How a result came about: the envelope of each saved result, and the machine.

pub mod envelope;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod machine;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
