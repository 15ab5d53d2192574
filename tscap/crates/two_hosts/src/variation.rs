//! How delays one way vary, without the clocks being aligned.

use tscap_delay::schema::Variation;
use tscap_statistics::Distribution;

/// Parts of an ns that jitter is counted in: it moves by a sixteenth each time.
const PARTS: u64 = 16;

/// Of one way.
#[derive(Debug)]
pub struct VariationRecorder {
    /// The packet before: its sequence number, when it was sent and when it arrived, each by
    /// its host's clock, ns.
    before: Option<(u64, i128, i128)>,
    ipdv: Distribution,
    jitter: u64,
    bound_ns: u64,
}

impl VariationRecorder {
    pub fn new() -> Self {
        Self {
            before: None,
            ipdv: Distribution::new(),
            jitter: 0,
            bound_ns: 0,
        }
    }

    /// Takes in a packet. `error_ns` is the greatest error of both of its stamps, `max_drift_ppb`
    /// by how much the rates of the clocks may differ.
    pub fn add(
        &mut self,
        sequence: u64,
        sent_ns: i128,
        arrived_ns: i128,
        error_ns: u64,
        max_drift_ppb: u64,
    ) {
        let before = self.before.replace((sequence, sent_ns, arrived_ns));
        let Some((number, sent_before, arrived_before)) = before else {
            return;
        };
        // One that was overtaken has no neighbour.
        if sequence != number + 1 {
            return;
        }
        let apart = sent_ns - sent_before;
        let difference = (arrived_ns - arrived_before) - apart;
        let difference = difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        self.ipdv.add(difference);
        let drift = apart.unsigned_abs() * u128::from(max_drift_ppb);
        let drift_ns = drift.div_ceil(1_000_000_000);
        let bound = u128::from(2 * error_ns) + drift_ns;
        self.bound_ns = self.bound_ns.max(u64::try_from(bound).unwrap_or(u64::MAX));
        // J += (|D| − J) / 16.
        let here = difference.unsigned_abs().saturating_mul(PARTS);
        self.jitter = self
            .jitter
            .saturating_add(here / 16)
            .saturating_sub(self.jitter / 16);
    }

    /// The peer's clock was set, or packets came in between: neighbours don't compare.
    pub fn break_off(&mut self) {
        self.before = None;
    }

    pub fn finish(self) -> Option<Variation> {
        Some(Variation {
            ipdv: self.ipdv.summary()?,
            jitter_ns: self.jitter / PARTS,
            bound_ns: self.bound_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_apart_don_t_matter() {
        let mut recorder = VariationRecorder::new();
        let delays = [1_000, 1_500, 1_200, 1_200];
        for (sequence, delay) in delays.into_iter().enumerate() {
            let sent = sequence as i128 * 10_000_000;
            // The other clock is 1 h ahead.
            let arrived = sent + delay + 3_600_000_000_000;
            recorder.add(sequence as u64, sent, arrived, 10, 100_000);
        }
        let found = recorder.finish().unwrap();
        assert_eq!(
            (found.ipdv.n, found.ipdv.min, found.ipdv.max),
            (3, -300, 500)
        );
        // 2 stamps each, and 100 ppm of 10 ms.
        assert_eq!(found.bound_ns, 2 * 10 + 1_000);
    }

    /// RFC 3550, A.8: a constant difference is the jitter in the end.
    #[test]
    fn jitter_comes_near_to_what_it_is() {
        let mut recorder = VariationRecorder::new();
        for sequence in 0..400u64 {
            let sent = i128::from(sequence) * 1_000_000;
            let delay = if sequence % 2 == 0 { 0 } else { 800 };
            recorder.add(sequence, sent, sent + delay, 1, 0);
        }
        let found = recorder.finish().unwrap();
        assert!(
            (795..=800).contains(&found.jitter_ns),
            "{}",
            found.jitter_ns
        );
    }

    #[test]
    fn packets_with_others_between_them_are_no_neighbours() {
        let mut recorder = VariationRecorder::new();
        for sequence in [0, 2, 4] {
            recorder.add(sequence, 0, 5, 1, 0);
        }
        assert_eq!(recorder.finish(), None);
        let mut recorder = VariationRecorder::new();
        recorder.add(0, 0, 5, 1, 0);
        recorder.break_off();
        recorder.add(1, 0, 5, 1, 0);
        assert_eq!(recorder.finish(), None);
    }
}
