//! Packet capture for Linux whose every timestamp can be trusted.
//!
//! Two wings: [`capturing`] and [`measuring`], the second built on the first. Above
//! them [`cli`] (arguments to plans) and [`command`] (one runner a command); below them
//! `text` (words for people). Unsafe code lives in `capturing::ring` and
//! `capturing::host` only.

pub mod capturing;
pub mod cli;
pub mod command;
pub mod measuring;
mod text;
