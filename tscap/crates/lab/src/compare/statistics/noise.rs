//! Seeded noise of a shared machine.

use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};
use statrs::distribution::{ContinuousCDF, Normal};

pub(super) struct Noise {
    rng: TestRng,
    normal: Normal,
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            rng: TestRng::from_seed(RngAlgorithm::ChaCha, &bytes),
            normal: Normal::standard(),
        }
    }

    /// In [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        self.rng.random()
    }

    fn normal(&mut self) -> f64 {
        let share = self.uniform().max(f64::EPSILON);
        self.normal.inverse_cdf(share)
    }

    /// An AR(1) series of variance 1 whose neighbours correlate by `phi`.
    pub(super) fn autocorrelated(&mut self, n: usize, phi: f64) -> impl Iterator<Item = f64> {
        let mut value = self.normal();
        (0..n).map(move |_| {
            value = phi * value + (1.0 - phi * phi).sqrt() * self.normal();
            value
        })
    }

    /// What an interruption adds, as a share of the cost: nothing in most rounds,
    /// else 5 % or more, of infinite variance.
    pub(super) fn spike(&mut self, probability: f64) -> f64 {
        if self.uniform() < probability {
            0.05 / (1.0 - self.uniform()).sqrt()
        } else {
            0.0
        }
    }
}
