//! Summary statistics: order statistics, the spread of a figure over rounds,
//! distributions in bounded memory, straight lines, the Allan deviation; voice quality from delay and loss.
//!
//! Two definitions of a quantile are used, both of Hyndman & Fan, The American
//! Statistician 50 (1996) 361–365: the [`median`] of an even number of values is the mean
//! of the two in the middle (type 2), every other quantile is a value that was observed
//! (type 1).

mod distribution;
mod line;
mod order;
mod ranges;
mod spread;
mod stability;
mod voice;

pub use distribution::{BEYOND, Distribution, Summary, ValueRange};
pub use line::least_squares;
pub use order::{at_rank, mean, median, quantile, trimmed_mean};
pub use ranges::Bin;
pub use spread::Spread;
pub use stability::{Allan, allan};
pub use voice::{Codec, DelayVariation, Voice, VoicePath, burst_ratio};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
