//! What is sent, and how much of it.

use serde::Serialize;

/// A kind of frame, and how much is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// Length, bytes.
    pub size: u32,
    /// Most bytes that are kept; 0 for all.
    pub snaplen: u32,
}

/// The kinds; the last one is bound by the memory that its file takes.
pub const SHORT: Kind = Kind::whole(64);
/// Middling frames, whole.
pub const MIDDLING: Kind = Kind::whole(256);
/// The beginnings of long frames.
pub const BEGINNINGS: Kind = Kind {
    size: 1500,
    snaplen: 128,
};
/// Long frames, whole.
pub const LONG: Kind = Kind::whole(1500);

/// Frames after which xdpdump is woken: of fewer it would leave the last ones lying.
const BULK: u64 = 128;
/// More than any of the programs writes beside the bytes of a frame: xdpdump's
/// blocks have 64.
const BESIDE: u64 = 72;

impl Kind {
    const fn whole(size: u32) -> Self {
        Self { size, snaplen: 0 }
    }

    /// For people.
    pub fn name(self) -> String {
        match self.snaplen {
            0 => format!("{} B", self.size),
            snaplen => format!("{} B, snaplen {snaplen}", self.size),
        }
    }

    /// Bytes kept of a frame.
    pub fn kept(self) -> u64 {
        match self.snaplen {
            0 => self.size.into(),
            snaplen => self.size.min(snaplen).into(),
        }
    }

    /// More than a file of so many frames takes.
    pub fn file_bytes(self, frames: u64) -> u64 {
        (self.kept() + BESIDE) * frames
    }
}

/// How much of everything.
#[derive(Debug)]
pub struct Amount {
    /// Memory that each program has between kernel and file, bytes.
    pub buffer_bytes: u64,
    /// Rounds.
    pub rounds: u32,
    /// The kinds and their frames flat out: of each at least 20 times the buffer, in whole bulks
    /// of xdpdump's.
    pub flat_out: [(Kind, u64); 4],
    /// Rates that are also sent at, frames a second.
    pub rates: &'static [f64],
    /// For so long, s.
    pub paced_s: f64,
    /// Attempts to find a higher rate without loss than the set ones, where flat out loses.
    pub attempts: u32,
}

/// Somewhat more than half an hour.
pub const FULL: Amount = Amount {
    buffer_bytes: 64 << 20,
    rounds: 5,
    flat_out: [
        (SHORT, 128 * 125_000),
        (MIDDLING, 128 * 36_000),
        (BEGINNINGS, 128 * 62_500),
        (LONG, 128 * 10_000),
    ],
    rates: &[0.3e6, 0.6e6, 1e6, 2e6],
    paced_s: 1.0,
    attempts: 2,
};

/// Less than three minutes.
pub const QUICK: Amount = Amount {
    buffer_bytes: 16 << 20,
    rounds: 1,
    flat_out: [
        (SHORT, 128 * 33_000),
        (MIDDLING, 128 * 9_800),
        (BEGINNINGS, 128 * 18_400),
        (LONG, 128 * 1_760),
    ],
    rates: &[0.6e6],
    paced_s: 0.5,
    attempts: 2,
};

impl Amount {
    /// Frames at a rate.
    pub fn paced_frames(&self, rate: f64) -> u64 {
        (rate * self.paced_s) as u64 / BULK * BULK
    }

    /// Frames to see whether a rate below flat out is without loss: ten times the buffer.
    pub fn slower_frames(&self, kind: Kind) -> u64 {
        10 * self.buffer_bytes / kind.file_bytes(BULK) * BULK
    }

    /// More than the largest file of these kinds takes, bytes.
    pub fn largest_file(&self, kinds: &[(Kind, u64)]) -> u64 {
        let fastest = self.rates.iter().copied().fold(0.0, f64::max);
        let paced = self.paced_frames(fastest);
        let files = kinds
            .iter()
            .map(|(kind, frames)| kind.file_bytes(*frames.max(&paced)));
        files.max().unwrap_or(0)
    }
}
