//! One-way delay between two hosts.
//!
//! - `alignment`: how far the clocks of two hosts are apart, with a bound;
//! - `reflector`: the session-reflector;
//! - `sender`: the session-sender.

mod alignment;
pub mod reflector;
pub mod sender;

pub use alignment::{AlignBy, Aligned, Alignment, Exchange, OneWay};
