//! How much is measured, and about how long it takes.

use super::experiment::LOSS_FRAMES;

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
    /// Frame sizes at which loss is measured, flat out, bytes.
    pub sizes: &'static [u32],
    /// Gaps at which loss is measured, byte times at 1 Gbit/s.
    pub gaps: &'static [u64],
    /// Whether two stamps take another turn in each round, with interrupts off.
    pub irqs_off: bool,
}

impl Amount {
    /// About 10 seconds.
    pub const QUICK: Self = Self {
        rounds: 10,
        frames: 1_000,
        pattern_rounds: 2,
        pattern_frames: [12, 100],
        rate_rounds: 1,
        sizes: &[64],
        gaps: &[1_000],
        irqs_off: false,
    };
    /// Less than two minutes.
    pub const DEFAULT: Self = Self {
        rounds: 60,
        frames: 2_000,
        pattern_rounds: 8,
        pattern_frames: [40, 400],
        rate_rounds: 5,
        sizes: &[64, 128, 256, 512, 1024, 1500],
        gaps: &[12, 100, 1_000, 10_000],
        irqs_off: false,
    };
    /// The paper's 20,000 frames a round.
    pub const PAPER: Self = Self {
        rounds: 5,
        frames: 20_000,
        pattern_rounds: 3,
        pattern_frames: [20_000, 20_000],
        ..Self::DEFAULT
    };

    /// About how long it takes, s; on live traffic the frames decide, and this is
    /// the least.
    pub fn seconds(&self, sends: bool) -> u64 {
        // Setting up a burst, both unrolled runs and the whole program.
        const TURN_MS: u64 = 70;
        // A capture begins, takes a burst, and ends.
        const CAPTURE_MS: u64 = 450;
        const STAMPS: u64 = 4;
        let with_interrupts_off = if self.irqs_off { 2 } else { 0 };
        let turns = u64::from(self.rounds) * (STAMPS + with_interrupts_off);
        let mut ms = turns * (TURN_MS + u64::from(self.frames) / 50);
        if sends {
            let [voip, hd] = self.pattern_frames.map(u64::from);
            let patterns = 20 * voip + hd * 1368 / 1000 + 2 * TURN_MS;
            ms += u64::from(self.pattern_rounds) * STAMPS * patterns;
            let points = (self.sizes.len() + self.gaps.len()) as u64;
            let captures = (u64::from(self.rate_rounds) + points) * CAPTURE_MS;
            // Byte times of a short frame and its gap are 8 ns each.
            let gaps = self.gaps.iter().map(|gap| (64 + gap) * 8 * LOSS_FRAMES);
            ms += (STAMPS - 1) * (captures + gaps.sum::<u64>() / 1_000_000);
        }
        ms / 1000 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_over_in_its_time() {
        assert!(Amount::QUICK.seconds(true) <= 15);
        assert!(Amount::DEFAULT.seconds(true) <= 120);
        // 20,000 frames 20 ms apart, for each of four stamps, three times.
        assert!(Amount::PAPER.seconds(true) > 3 * 4 * 400);
        assert!(Amount::DEFAULT.seconds(false) < Amount::DEFAULT.seconds(true));
        // Two more turns a round.
        for (amount, more) in [(Amount::QUICK, 1..=2), (Amount::DEFAULT, 10..=15)] {
            let both_ways = Amount {
                irqs_off: true,
                ..amount
            };
            assert!(more.contains(&(both_ways.seconds(true) - amount.seconds(true))));
        }
    }
}
