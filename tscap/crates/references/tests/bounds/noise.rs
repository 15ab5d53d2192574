//! How long a process takes from one reading of a clock to the next.

use fastrand::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Quiet,
    /// Interrupts of some microseconds.
    Busy,
    /// Ways of different lengths, many interrupts, and other processes.
    Uneven,
}

pub const KINDS: [Kind; 3] = [Kind::Quiet, Kind::Busy, Kind::Uneven];

#[derive(Clone, Debug)]
pub struct Noise {
    kind: Kind,
    random: Rng,
}

impl Noise {
    pub fn new(kind: Kind, seed: u64) -> Self {
        let random = Rng::with_seed(seed);
        Self { kind, random }
    }

    /// Before the reading with this number of a bracket, ns; nearly every one is
    /// interrupted in a storm.
    pub fn gap(&mut self, reading: usize, is_storm: bool) -> u64 {
        let (least, mean, interrupted, preempted) = match self.kind {
            Kind::Quiet => (18, 2.0, 0.0, 0.0),
            Kind::Busy => (22, 8.0, 0.01, 0.0),
            Kind::Uneven => ([15, 62, 21, 33, 18, 40][reading % 6], 12.0, 0.04, 0.001),
        };
        let mut gap = least + exponential(&mut self.random, mean);
        if self.random.f64() < if is_storm { 0.6 } else { interrupted } {
            gap += log_uniform(&mut self.random, 200, 20_000);
        }
        if self.random.f64() < preempted {
            gap += log_uniform(&mut self.random, 50_000, 4_000_000);
        }
        gap
    }
}

pub fn exponential(random: &mut Rng, mean: f64) -> u64 {
    (-mean * (1.0 - random.f64()).ln()) as u64
}

/// Each power of ten is as likely as the next.
pub fn log_uniform(random: &mut Rng, least: u64, most: u64) -> u64 {
    let (least, most) = ((least as f64).ln(), (most as f64).ln());
    (least + (most - least) * random.f64()).exp() as u64
}

/// The same with either sign.
pub fn either_sign(random: &mut Rng, least: u64, most: u64) -> i64 {
    let size = log_uniform(random, least, most).cast_signed();
    if random.bool() { size } else { -size }
}
