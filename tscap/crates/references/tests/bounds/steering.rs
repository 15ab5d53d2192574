//! What a daemon does to a PTP hardware clock.

use fastrand::Rng;

use super::scenario::S;

/// Between two corrections of ptp4l, ns.
const CORRECTED_EVERY: u64 = S / 8;
/// Greatest correction, parts per billion.
const MOST_PPB: i64 = 4_000;

/// How far a device is ahead of the host's oscillator: straight pieces.
#[derive(Clone, Debug)]
pub struct Steering {
    /// From when, how far ahead it is then, ns · 10⁹, and by how much faster it runs, parts per
    /// billion.
    pieces: Vec<(u64, i128, i64)>,
}

impl Steering {
    pub fn none(ppb: i64) -> Self {
        Self {
            pieces: vec![(0, 0, ppb)],
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

    fn ahead(&self, at_ns: u64) -> i128 {
        let next = self.pieces.partition_point(|(from, ..)| *from <= at_ns);
        let (from, ahead, ppb) = self.pieces[next.saturating_sub(1)];
        ahead + i128::from(at_ns - from) * i128::from(ppb)
    }

    /// How far ahead it is, ns.
    pub fn ahead_ns(&self, at_ns: u64) -> i64 {
        i64::try_from(self.ahead(at_ns) / 1_000_000_000).expect("it is short")
    }
}
