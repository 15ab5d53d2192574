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
    /// Frame sizes at which loss is measured, flat out, bytes.
    pub sizes: &'static [u32],
    /// Gaps at which loss is measured, byte times at 1 Gbit/s.
    pub gaps: &'static [u64],
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
    };
    /// About a minute and a half.
    pub const DEFAULT: Self = Self {
        rounds: 25,
        frames: 4_000,
        pattern_rounds: 10,
        pattern_frames: [40, 400],
        rate_rounds: 5,
        sizes: &[64, 128, 256, 512, 1024, 1500],
        gaps: &[12, 100, 1_000, 10_000],
    };
    /// The paper's 20,000 frames a round.
    pub const PAPER: Self = Self {
        rounds: 5,
        frames: 20_000,
        pattern_rounds: 3,
        pattern_frames: [20_000, 20_000],
        ..Self::DEFAULT
    };
}
