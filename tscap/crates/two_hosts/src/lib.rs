//! One-way delay between two hosts.
//!
//! - `alignment`: how far the clocks of two hosts are apart, with a bound.

mod alignment;

pub use alignment::{AlignBy, Aligned, Alignment, Exchange, OneWay};
