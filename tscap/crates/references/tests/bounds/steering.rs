//! What a daemon does to a PTP hardware clock.

use fastrand::Rng;

use super::noise::log_uniform;
use super::scenario::{MS, S, US};

/// Between two corrections of ptp4l, ns.
const CORRECTED_EVERY: u64 = S / 8;
/// Greatest correction, parts per billion.
const MOST_PPB: i64 = 5_000;

/// How far a device is ahead of the host's oscillator: straight pieces.
#[derive(Clone, Debug)]
pub struct Steering {
    /// From when, how far ahead it is then, ns · 10⁹, and by how much faster it runs, parts per
    /// billion.
    pieces: Vec<(u64, i128, i64)>,
    /// When it is set, and by how much, ns.
    sets: Vec<(u64, i64)>,
}

impl Steering {
    pub fn none(ppb: i64) -> Self {
        Self {
            pieces: vec![(0, 0, ppb)],
            sets: Vec::new(),
        }
    }

    /// Eight times a second at another rate, until the end.
    pub fn by_ptp4l(base_ppb: i64, end_ns: u64, random: &mut Rng) -> Self {
        let mut steering = Self::none(base_ppb);
        let mut at = random.u64(0..CORRECTED_EVERY);
        while at < end_ns {
            let ppb = base_ppb + random.i64(-MOST_PPB..=MOST_PPB);
            steering.pieces.push((at, steering.ahead(at), ppb));
            at += CORRECTED_EVERY;
        }
        steering
    }

    /// It is also set, some times, and sometimes set back: by less and by more than half a second.
    pub fn with_sets(mut self, from_ns: u64, end_ns: u64, random: &mut Rng) -> Self {
        for _ in 0..random.usize(1..4) {
            let most = if random.bool() { S * 9 / 20 } else { 100 * S };
            let least = if most < S { 20 * US } else { S * 11 / 20 };
            let by = log_uniform(random, least, most).cast_signed();
            let by = if random.bool() { by } else { -by };
            let at = random.u64(from_ns..end_ns);
            self.sets.push((at, by));
            if random.u8(0..3) == 0 {
                let later = log_uniform(random, MS, 2 * S);
                self.sets.push((at + later, -by));
            }
        }
        self
    }

    /// Whether it is ever set.
    pub fn is_set(&self) -> bool {
        !self.sets.is_empty()
    }

    fn ahead(&self, at_ns: u64) -> i128 {
        let next = self.pieces.partition_point(|(from, ..)| *from <= at_ns);
        let (from, ahead, ppb) = self.pieces[next.saturating_sub(1)];
        ahead + i128::from(at_ns - from) * i128::from(ppb)
    }

    /// How far ahead it is, ns.
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        let set = self.sets.iter().filter(|(at, _)| *at <= at_ns);
        let set: i64 = set.map(|(_, by)| by).sum();
        i64::try_from(self.ahead(at_ns) / 1_000_000_000).expect("it is short") + set
    }
}
