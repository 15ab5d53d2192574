//! Stamps for others: receive times of sockets that know nothing of tscap, exchanges with NTP
//! servers that the programs stamp, and references whose time takes the place of the host's.

pub mod ntp;
pub mod reference;
pub mod stamping;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
