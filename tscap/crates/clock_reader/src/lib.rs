//! Reads the clock that `tscap clock --serve` shares with programs.
//!
//! [`Clock`] is the reader. [`layout`] is the page in memory, and [`calculation`] what follows
//! from a page, a counter value and the kernel's clocks: both are pure, and whoever writes a page
//! uses them too. Nothing in a page is trusted: any bytes give a time or a [`Refused`].

pub mod calculation;
mod clock;
pub mod layout;
pub mod system;

pub use calculation::{Difference, Interval, Refused, State, Times};
pub use clock::{Clock, DEFAULT_PATH, OpenError, boot_id};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
