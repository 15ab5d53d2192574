//! What is sent, and how much of it.

use std::time::Duration;

use serde::Serialize;
use tscap_traffic::load::{IMIX, Sizes};

/// A kind of frame, and how much is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// Length, bytes; of a mix the mean.
    pub size: u32,
    /// Whether it is a mix of lengths ([`IMIX`]).
    pub is_mix: bool,
    /// Most bytes that are kept; 0 for all.
    pub snaplen: u32,
}

/// The kinds; the last one is bound by the memory that its file takes.
pub const SHORT: Kind = Kind::whole(64);
/// Middling frames, whole.
pub const MIDDLING: Kind = Kind::whole(256);
/// The beginnings of long frames.
pub const BEGINNINGS: Kind = Kind {
    snaplen: 128,
    ..LONG
};
/// Long frames, whole.
pub const LONG: Kind = Kind::whole(1500);
/// A mix of lengths, whole.
pub const MIX: Kind = Kind::mix(IMIX);

/// Frames after which xdpdump is woken: of fewer it would leave the last ones lying.
const BULK: u64 = 128;
/// More than any of the programs writes beside the bytes of a frame: xdpdump's
/// blocks have 64.
const BESIDE: u64 = 72;

impl Kind {
    const fn whole(size: u32) -> Self {
        Self {
            size,
            is_mix: false,
            snaplen: 0,
        }
    }

    /// Frames of these lengths, whole; the mean is rounded up.
    const fn mix(of: [(u32, u64); 3]) -> Self {
        let [(a, of_a), (b, of_b), (c, of_c)] = of;
        let bytes = a as u64 * of_a + b as u64 * of_b + c as u64 * of_c;
        Self {
            is_mix: true,
            ..Self::whole(bytes.div_ceil(of_a + of_b + of_c) as u32)
        }
    }

    /// The lengths, for a burst.
    pub fn sizes(self) -> Sizes {
        if self.is_mix {
            Sizes::Imix
        } else {
            Sizes::Same(self.size)
        }
    }

    /// For people.
    pub fn name(self) -> String {
        match self.snaplen {
            _ if self.is_mix => "IMIX".to_owned(),
            0 => format!("{} B", self.size),
            snaplen => format!("{} B, snaplen {snaplen}", self.size),
        }
    }

    /// Bytes kept of a frame.
    const fn kept(self) -> u64 {
        match self.snaplen {
            snaplen if snaplen > 0 && snaplen < self.size => snaplen as u64,
            _ => self.size as u64,
        }
    }

    /// Frames of which a file takes at most so many bytes, in whole bulks of xdpdump's.
    const fn frames_of(self, bytes: u64) -> u64 {
        bytes / self.file_bytes(BULK) * BULK
    }

    /// More than a file of so many frames takes.
    pub const fn file_bytes(self, frames: u64) -> u64 {
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
    pub flat_out: &'static [(Kind, u64)],
    /// Rates that are also sent at, frames a second.
    pub rates: &'static [f64],
    /// For so long, s.
    pub paced_s: f64,
    /// Bytes of the files by which it is seen whether a rate below flat out is without loss: at
    /// least ten times the buffer.
    pub slower_bytes: u64,
    /// Attempts to find a higher rate without loss than the set ones, where flat out loses.
    pub attempts: u32,
    /// Attempts at rates between the highest without loss and the lowest with it.
    pub refinements: u32,
    /// For so long the disk is written to alone, where there is one.
    pub disk_alone: Duration,
}

/// Somewhat more than half an hour.
pub const FULL: Amount = Amount {
    buffer_bytes: 64 << 20,
    rounds: 5,
    flat_out: &[
        (SHORT, 128 * 125_000),
        (MIDDLING, 128 * 36_000),
        (BEGINNINGS, 128 * 62_500),
        (LONG, 128 * 10_000),
        (MIX, 128 * 30_000),
    ],
    rates: &[0.3e6, 0.6e6, 1e6, 2e6],
    paced_s: 1.0,
    slower_bytes: 640 << 20,
    attempts: 2,
    refinements: 0,
    disk_alone: Duration::ZERO,
};

/// Less than three minutes.
pub const QUICK: Amount = Amount {
    buffer_bytes: 16 << 20,
    rounds: 1,
    flat_out: &[
        (SHORT, 128 * 33_000),
        (MIDDLING, 128 * 9_800),
        (BEGINNINGS, 128 * 18_400),
        (LONG, 128 * 1_760),
        (MIX, 128 * 7_000),
    ],
    rates: &[0.6e6],
    paced_s: 0.5,
    slower_bytes: 160 << 20,
    attempts: 2,
    refinements: 0,
    disk_alone: Duration::ZERO,
};

/// To a disk: flat out and slower about 2.5 GB a run, most of an hour in all.
pub const DISK_FULL: Amount = Amount {
    flat_out: &on_disk(2_500_000_000),
    rates: &[],
    slower_bytes: 2_500_000_000,
    attempts: 4,
    refinements: 2,
    disk_alone: Duration::from_secs(4),
    ..FULL
};

/// About 400 MB a run, few minutes.
pub const DISK_QUICK: Amount = Amount {
    flat_out: &on_disk(400_000_000),
    rates: &[],
    slower_bytes: 400_000_000,
    attempts: 3,
    refinements: 1,
    disk_alone: Duration::from_secs(1),
    ..QUICK
};

/// How long a disk with pauses takes nothing, s…
pub const PAUSE_S: f64 = 0.5;
/// …and how long it takes what comes before the next pause.
pub const BETWEEN_PAUSES_S: f64 = 2.0;

/// To a disk with pauses: long frames, 216 MB/s of file at the set rate, and about 2.5 GB a run.
pub const PAUSES_FULL: Amount = Amount {
    flat_out: &[(LONG, LONG.frames_of(2_500_000_000))],
    rates: &[0.14e6],
    paced_s: 10.0,
    slower_bytes: FULL.slower_bytes,
    attempts: 0,
    refinements: 0,
    ..DISK_FULL
};

/// The same, at least one pause a run.
pub const PAUSES_QUICK: Amount = Amount {
    flat_out: &[(LONG, LONG.frames_of(400_000_000))],
    paced_s: 4.0,
    slower_bytes: QUICK.slower_bytes,
    buffer_bytes: QUICK.buffer_bytes,
    rounds: QUICK.rounds,
    ..PAUSES_FULL
};

/// The kinds that are sent to a port that only listens, and to a disk.
pub const WHOLE: [Kind; 4] = [SHORT, MIDDLING, LONG, MIX];

/// Frames of about so many bytes of file, in whole bulks of xdpdump's.
const fn on_disk(bytes: u64) -> [(Kind, u64); WHOLE.len()] {
    let [short, middling, long, mix] = WHOLE;
    [
        (short, short.frames_of(bytes)),
        (middling, middling.frames_of(bytes)),
        (long, long.frames_of(bytes)),
        (mix, mix.frames_of(bytes)),
    ]
}

impl Amount {
    /// Frames at a rate.
    pub fn paced_frames(&self, rate: f64) -> u64 {
        (rate * self.paced_s) as u64 / BULK * BULK
    }

    /// Frames to see whether a rate below flat out is without loss.
    pub fn slower_frames(&self, kind: Kind) -> u64 {
        kind.frames_of(self.slower_bytes)
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
