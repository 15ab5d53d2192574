//! How much is measured, and about how long it takes.

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Rounds in which every stamp takes its turn.
    pub rounds: u32,
    /// Frames of each stamp in each round, 20 µs apart.
    pub frames: u32,
    /// Of these rounds, so many also send the paper's patterns.
    pub pattern_rounds: u32,
    /// Frames of the patterns voip and hd in each of these rounds.
    pub pattern_frames: [u32; 2],
    /// Of the rounds, so many also look for the highest rate without loss.
    pub rate_rounds: u32,
    /// Rounds in which loss is measured.
    pub loss_rounds: u32,
    /// Frames of each burst there.
    pub loss_frames: u32,
    /// Frame sizes at which loss is measured, flat out, bytes.
    pub sizes: &'static [u32],
    /// Gaps at which loss is measured, byte times at 1 Gbit/s.
    pub gaps: &'static [u64],
    /// Whether two stamps take another turn in each round, with interrupts off.
    pub irqs_off: bool,
}

/// Frames of a burst of a loss curve: the paper's.
const LOSS_FRAMES: u32 = 20_000;

impl Amount {
    /// About 20 seconds. With fewer rounds the verdicts' intervals are twenty times as wide.
    pub const QUICK: Self = Self {
        rounds: 40,
        frames: 1_000,
        pattern_rounds: 2,
        pattern_frames: [12, 100],
        rate_rounds: 1,
        loss_rounds: 2,
        loss_frames: LOSS_FRAMES,
        sizes: &[64],
        gaps: &[1_000],
        irqs_off: false,
    };
    /// About five minutes.
    pub const DEFAULT: Self = Self {
        rounds: 60,
        frames: 2_000,
        pattern_rounds: 8,
        pattern_frames: [40, 400],
        rate_rounds: 5,
        loss_rounds: 10,
        loss_frames: LOSS_FRAMES,
        // Among them those of both patterns.
        sizes: &[64, 128, 140, 256, 512, 1024, 1368, 1500],
        gaps: &[12, 100, 1_000, 10_000],
        irqs_off: false,
    };
    /// The paper's 20,000 frames of each pattern a round.
    pub const PAPER: Self = Self {
        rounds: 60,
        frames: 20_000,
        pattern_rounds: 3,
        pattern_frames: [20_000, 20_000],
        ..Self::DEFAULT
    };

    /// Rounds of both kinds: those of costs, and if it `sends` those of loss.
    pub fn steps(&self, sends: bool) -> u32 {
        self.rounds + if sends { self.loss_rounds } else { 0 }
    }

    /// About how long it takes, s; on live traffic the frames decide, and this is
    /// the least until the `first_round` is over, which took so many seconds.
    pub fn seconds(&self, sends: bool, first_round: Option<f64>) -> f64 {
        // Setting up a burst, both unrolled runs and the whole program.
        const TURN: f64 = 0.07;
        // A capture begins, takes a burst, and ends.
        const CAPTURE: f64 = 0.45;
        const STAMPS: u32 = 4;
        let with_interrupts_off = if self.irqs_off { 2 } else { 0 };
        let turn = TURN + f64::from(self.frames) * 20e-6;
        let round = f64::from(STAMPS + with_interrupts_off) * turn;
        let mut seconds = f64::from(self.rounds) * first_round.unwrap_or(round);
        if sends {
            let [voip, hd] = self.pattern_frames.map(f64::from);
            let patterns = voip * 20e-3 + hd * 1.368e-3 + 2.0 * TURN;
            seconds += f64::from(self.pattern_rounds * STAMPS) * patterns;
            let points = (self.sizes.len() + self.gaps.len()) as f64;
            let loss_rounds = f64::from(self.loss_rounds);
            let captures = (f64::from(self.rate_rounds) + loss_rounds * points) * CAPTURE;
            // Byte times of a short frame and its gap are 8 ns each.
            let bytes: u64 = self.gaps.iter().map(|gap| 64 + gap).sum();
            let frames = f64::from(self.loss_frames) * loss_rounds;
            seconds += f64::from(STAMPS - 1) * (captures + bytes as f64 * frames * 8e-9);
        }
        seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_over_in_its_time() {
        assert!(Amount::QUICK.seconds(true, None) <= 30.0);
        assert!(Amount::DEFAULT.seconds(true, None) <= 360.0);
        // 20,000 frames 20 ms apart, for each of four stamps, three times.
        assert!(Amount::PAPER.seconds(true, None) > 3.0 * 4.0 * 400.0);
        assert!(Amount::DEFAULT.seconds(false, None) < Amount::DEFAULT.seconds(true, None));
        // Two more turns a round.
        for (amount, more) in [(Amount::QUICK, 5.0..=9.0), (Amount::DEFAULT, 10.0..=15.0)] {
            let both_ways = Amount {
                irqs_off: true,
                ..amount
            };
            assert!(more.contains(&(both_ways.seconds(true, None) - amount.seconds(true, None))));
        }
    }

    /// The paper's Fig. 6: 20,000 frames a round.
    #[test]
    fn loss_is_measured_in_ten_rounds_of_the_papers_frames() {
        for amount in [Amount::DEFAULT, Amount::PAPER] {
            assert!(amount.loss_rounds >= 10 && amount.loss_frames == 20_000);
            for size in [140, 1368] {
                assert!(amount.sizes.contains(&size), "{size}");
            }
        }
    }

    #[test]
    fn the_first_round_tells_how_long_the_others_take() {
        let (rough, timed) = (
            Amount::QUICK.seconds(true, None),
            Amount::QUICK.seconds(true, Some(1.0)),
        );
        // Patterns and captures come on top of 40 rounds.
        assert!((40.0..rough + 40.0).contains(&timed), "{timed}");
        assert_eq!(Amount::QUICK.seconds(false, Some(1.0)), 40.0);
    }
}
