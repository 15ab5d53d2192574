//! What happens in the simulation: the path to a server, and what the server shows.

use anyhow::{Context, Result};
use tscap_clock::Bracket;
use tscap_clock::scripted::{EPOCH, Oscillator, Path, Random};

/// A second, ns.
pub const S: u64 = 1_000_000_000;
/// A server on the same network with little traffic, as in section II-C of the paper.
const LAN: Path = Path {
    least_ns: [100_000, 100_000],
    served_ns: 20_000,
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
pub struct Script {
    /// The path of the exchange of each second; none if there is no answer.
    path: Box<dyn Fn(u64) -> Option<Path>>,
    /// What the reference shows at a true time, ns.
    reference: Box<dyn Fn(u64) -> u64>,
}

impl Script {
    /// Nothing happens to the reference.
    fn of(path: impl Fn(u64) -> Path + 'static) -> Self {
        Self {
            path: Box::new(move |second| Some(path(second))),
            reference: Box::new(|t| EPOCH + t),
        }
    }

    /// The exchange of a second, if there is one.
    pub fn bracket(
        &self,
        second: u64,
        counter: &Oscillator,
        random: &mut Random,
    ) -> Option<Bracket> {
        let path = (self.path)(second)?;
        Some(path.bracket(second * S, counter, &self.reference, random))
    }

    /// What the reference shows at a true time, ns.
    pub fn reference(&self, t: u64) -> u64 {
        (self.reference)(t)
    }

    /// The first two exchanges of a clock, so many seconds apart.
    pub fn start(
        &self,
        period_s: u64,
        counter: &Oscillator,
        random: &mut Random,
    ) -> Result<[Bracket; 2]> {
        let mut look = |second| {
            let exchange = self.bracket(second, counter, random);
            exchange.context("the reference must answer at the start")
        };
        Ok([look(0)?, look(period_s)?])
    }
}

/// Nothing happens at all.
pub fn quiet() -> Script {
    Script::of(|_| LAN)
}

/// The queues are full from the start.
pub fn always_congested() -> Script {
    Script::of(|_| CONGESTED)
}

/// The reference is set by a second, at a second.
pub fn step(at: u64) -> Script {
    Script {
        reference: Box::new(move |t| EPOCH + t + if t < at * S { 0 } else { S }),
        ..quiet()
    }
}

/// It is slewed.
pub fn slew() -> Script {
    Script {
        reference: Box::new(|t| {
            let since = t.saturating_sub(BEFORE_S * S).min(SLEW_S * S);
            EPOCH + t + since * SLEW_PPM / 1_000_000
        }),
        ..quiet()
    }
}

/// It does not answer between two seconds.
pub fn away(from: u64, to: u64) -> Script {
    Script {
        path: Box::new(move |second| (!(from..to).contains(&second)).then_some(LAN)),
        ..quiet()
    }
}

/// The path becomes longer at a second, for good.
pub fn level_shift(at: u64) -> Script {
    Script::of(move |second| Path {
        least_ns: [LAN.least_ns[0] + if second < at { 0 } else { SHIFT_NS }; 2],
        ..LAN
    })
}

/// Queues that are full for seven minutes, and empty for ten seconds.
pub const CONGESTION: &str = "congestion";
/// The path becomes longer and shorter again, every hour.
pub const LEVEL_SHIFTS: &str = "level shifts of 300 µs each way";
const SHIFT_NS: u64 = 300_000;

/// What goes on for hours.
pub fn scenarios() -> [(&'static str, Script); 4] {
    [
        ("quiet", quiet()),
        (
            CONGESTION,
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
                least_ns: [LAN.least_ns[0] + SHIFT_NS * (second / 3_600 % 2); 2],
                ..LAN
            }),
        ),
    ]
}

/// A day at random: round trips of 0.1 to 40 ms, of which any part is the way there; in
/// one hour of ten no answers, in others queues on half or most of the ways, or a longer way
/// in one direction.
pub fn random_day(seed: u64) -> Script {
    let mut day = Random(seed);
    let round_trip = between(&mut day, [1e5, 4e7]);
    let there = round_trip * day.uniform();
    let usual = Path {
        least_ns: [there, round_trip - there].map(|ns| ns as u64),
        served_ns: between(&mut day, [1e3, 1e6]) as u64,
        jitter_ns: between(&mut day, [1e3, 1e6]),
        ..LAN
    };
    let path = move |second| {
        let hour = second / 3_600;
        let mut random = Random(seed ^ ((hour + 1) << 32));
        let kind = (random.uniform() * 10.0) as u64;
        let longer_ns = between(&mut random, [1e4, 1e7]);
        let way = usize::from(random.uniform() < 0.5);
        let mut path = usual;
        match kind {
            0 if hour > 0 => return None,
            1 => path.least_ns[way] += longer_ns as u64,
            2 | 3 => {
                path.congested = if kind == 2 { 0.5 } else { 0.95 };
                path.congestion_ns = longer_ns;
            }
            _ => {}
        }
        Some(path)
    };
    Script {
        path: Box::new(path),
        ..quiet()
    }
}

/// A counter at random whose rate is never farther than 0.1 ppm from its average over any
/// time: what the bound assumes of it ([`tscap_clock::Scale`]).
pub fn random_oscillator(seed: u64) -> Oscillator {
    let mut random = Random(!seed);
    let fast = 50.0 * random.uniform();
    let periods = [[100.0, 3_000.0], [3_000.0, 200_000.0]];
    let [short, long] = periods.map(|period| between(&mut random, period));
    Oscillator {
        hertz: (1e9 * (1.0 + 4.0 * random.uniform())) as u64,
        skew_ppb: 100_000.0 * (random.uniform() - 0.5),
        wander: vec![(fast, short), (50.0 - fast, long)],
    }
}

/// Between two values, as often in each part of the logarithm.
fn between(random: &mut Random, [low, high]: [f64; 2]) -> f64 {
    low * (high / low).powf(random.uniform())
}
