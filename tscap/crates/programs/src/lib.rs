//! The eBPF programs: loaded, attached, their counters read, and the rings that they fill.

pub mod hook;
#[allow(
    unsafe_code,
    reason = "maps memory that the kernel writes; the invariants are in its files"
)]
pub mod ring;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
