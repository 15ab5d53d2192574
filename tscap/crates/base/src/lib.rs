//! What every crate of tscap needs: words for people, failures with what to do next, and
//! the files of the kernel.

pub mod failure;
pub mod kernel_files;
#[cfg(any(test, feature = "fixtures"))]
pub mod recorded;
#[cfg(any(test, feature = "fixtures"))]
pub mod skip;
pub mod text;

pub use failure::Failure;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
