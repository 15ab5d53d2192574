//! The capture file (pcapng), and the account of each frame that was seen.

pub mod accounting;
pub mod pcapng;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
