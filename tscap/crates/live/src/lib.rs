//! What live commands have in common: settings that must be given back, and what a member of the
//! group that may capture is refused.

pub mod membership;
pub mod settings;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
