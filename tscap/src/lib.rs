//! Packet capture for Linux whose every timestamp can be trusted.
//!
//! Two wings: [`capturing`] and [`measuring`], the second built on the first. Above
//! them [`cli`] (arguments to plans) and [`command`] (one runner a command); below them
//! `text` (words for people). Unsafe code lives in `capturing::ring` and
//! `capturing::host` only.

pub mod capturing;
pub mod cli;
pub mod command;
mod failure;
pub mod measuring;
mod text;

pub use capturing::capture::{Capture, Event, Running, Stop, Summary};
pub use failure::Failure;
