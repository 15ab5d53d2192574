//! Writes the clock that programs read from shared memory.

mod file;
mod past;
mod publisher;
mod utc;

pub use file::{PageFile, PageFileError};
pub use publisher::Publisher;
pub use utc::Utc;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
