//! What a capture loses, predicted: a fluid queueing model of its stages.
//!
//! ```text
//! sender --> [receive queue] --> XDP program --> [ring] --> converter --> [file buffer] --> file
//!            lost before          costs           lost       sleeps,                         drains so
//!            the program          time            in ring    then costs time                 many bytes/s
//! ```
//!
//! Frames are a fluid: each stage passes on what comes in or what it can, whichever
//! is less, and what exceeds it fills the buffer before it; once that is full it is
//! lost. Skopkó found by experiment that size, snaplen and the buffers decide; here
//! their part is computed. [`Costs`] are what a machine must be asked for, `fit`
//! asks; everything else is arithmetic.

mod costs;
mod drain;
mod flow;
mod prediction;
mod ring;

pub use costs::{Cost, Costs, Receiving, Writer, record_bytes};
pub use prediction::{Load, Prediction, predict};
pub use ring::{Needed, least_ring};

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
#[cfg(test)]
mod tests;
