//! What the measured series say: verdicts, autocorrelation, correlation, density.
//! Pure: nothing here touches the system.

mod correlated;
mod histogram;
mod interrupts;
mod interval;
#[cfg(test)]
mod noise;
mod power;
mod sentences;
mod series;
mod verdict;

pub use histogram::Density;
pub use interrupts::interrupt_sentences;
pub use interval::mean_interval;
pub use power::{family_sentence, power_sentence};
pub use sentences::{advice, against};
pub use series::{autocorrelation, correlation, pooled_autocorrelation};
pub use verdict::{Allowance, ratio, verdict};
