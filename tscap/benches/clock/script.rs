//! What happens in the simulation: the path to a server, and what the server shows.

use tscap::capturing::clock::Bracket;
use tscap::capturing::clock::scripted::{EPOCH, Oscillator, Path, Random};

/// A second, ns.
pub const S: u64 = 1_000_000_000;
/// A server on the same network with little traffic, as in section II-C of the paper.
const LAN: Path = Path {
    least_ns: [100_000, 100_000],
    served_ns: 0,
    jitter_ns: 15_000.0,
    congested: 0.0,
    congestion_ns: 0.0,
};
/// Its figure 5: another host's transfers fill the queues.
const CONGESTED: Path = Path {
    congested: 0.5,
    congestion_ns: 500_000.0,
    ..LAN
};
/// One of those transfers, and the pause after it, s.
const TRANSFER_S: u64 = 420;
const PAUSE_S: u64 = 10;
/// Exchanges before that, and before the reference is set or slewed.
pub const BEFORE_S: u64 = 3_600;
/// How long it is slewed, s.
pub const SLEW_S: u64 = 100;
/// By as much as the kernel does for `adjtime`, ppm (`MAX_TICKADJ`, kernel/time/ntp.c).
const SLEW_PPM: u64 = 500;

/// A counter in a cooled machine room (figure 12), whose cooling comes on every 200 s; and
/// a day.
pub fn oscillator() -> Oscillator {
    Oscillator {
        hertz: 2_596_130_000,
        skew_ppb: 23_000.0,
        wander: vec![(80.0, 200.0), (30.0, 86_400.0)],
    }
}

/// What happens.
#[derive(Clone, Copy)]
pub struct Script {
    /// The path of the exchange of each second.
    path: fn(u64) -> Path,
    /// What the reference shows at a true time, ns.
    pub reference: fn(u64) -> u64,
}

impl Script {
    /// Nothing happens to the reference.
    const fn of(path: fn(u64) -> Path) -> Self {
        Self {
            path,
            reference: |t| EPOCH + t,
        }
    }

    /// The exchange of a second.
    pub fn bracket(&self, second: u64, counter: &Oscillator, random: &mut Random) -> Bracket {
        (self.path)(second).bracket(second * S, counter, self.reference, random)
    }
}

/// Nothing happens at all.
pub const QUIET: Script = Script::of(|_| LAN);
/// The queues are full from the start.
pub const ALWAYS_CONGESTED: Script = Script::of(|_| CONGESTED);
/// The reference is set by a second.
pub const STEP: Script = Script {
    reference: |t| {
        if t < BEFORE_S * S {
            EPOCH + t
        } else {
            EPOCH + t + S
        }
    },
    ..QUIET
};
/// It is slewed.
pub const SLEW: Script = Script {
    reference: |t| {
        let since = t.saturating_sub(BEFORE_S * S).min(SLEW_S * S);
        EPOCH + t + since * SLEW_PPM / 1_000_000
    },
    ..QUIET
};

/// The path becomes longer and shorter again, every hour.
pub const LEVEL_SHIFTS: &str = "level shifts of 300 µs each way";

/// What goes on for hours.
pub const SCENARIOS: [(&str, Script); 4] = [
    ("quiet", QUIET),
    (
        "congestion",
        Script::of(|second| {
            if second % (TRANSFER_S + PAUSE_S) < TRANSFER_S {
                CONGESTED
            } else {
                LAN
            }
        }),
    ),
    (
        "asymmetry of 60 µs",
        Script::of(|_| Path {
            least_ns: [100_000, 160_000],
            ..LAN
        }),
    ),
    (
        LEVEL_SHIFTS,
        Script::of(|second| Path {
            least_ns: [100_000 + 300_000 * (second / 3_600 % 2); 2],
            ..LAN
        }),
    ),
];
