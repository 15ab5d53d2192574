//! What the measured series say: verdicts, autocorrelation, correlation, density.
//! Pure: nothing here touches the system.

mod histogram;
mod interrupts;
mod interval;
#[cfg(test)]
mod noise;
mod sentences;
mod series;
mod verdict;

pub use histogram::Density;
pub use interrupts::interrupt_sentences;
pub use sentences::advice;
pub use series::{autocorrelation, correlation};
pub use verdict::{ratio, verdict};
