//! Packet capture for Linux whose every timestamp can be trusted.
//!
//! A program captures by [`Capture`]. The rest is in the crates below `tscap/crates`; `command`
//! has one runner for each command of the program `tscap`.
//!
#![doc = concat!("```no_run\n", include_str!("../examples/capture.rs"), "```")]

pub mod command;

pub use tscap_base::Failure;
pub use tscap_capture::{Capture, Event, Running, Stop, Summary};
