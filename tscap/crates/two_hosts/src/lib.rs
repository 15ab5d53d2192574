//! One-way delay between two hosts.
//!
//! - `alignment`: how far the clocks of two hosts are apart, with a bound;
//! - `reflector`: the session-reflector.

mod alignment;
pub mod reflector;
mod sender;

pub use alignment::{AlignBy, Aligned, Alignment, Exchange, OneWay};
