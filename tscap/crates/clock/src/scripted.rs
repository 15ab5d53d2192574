//! A counter and a reference that follow a script: for tests and benches, which know
//! the true time and drive the same clock as a capture does.

use std::f64::consts::TAU;

use super::{Bracket, CrossTimestamp, MonoNs, RealNs, TaiNs, TscCycles};

/// The true time 0 of every script, ns since the epoch.
pub const EPOCH: u64 = 1_700_000_000_000_000_000;

/// A counter whose rate is known exactly.
#[derive(Clone, Debug)]
pub struct Oscillator {
    /// Nominal rate, Hz.
    pub hertz: u64,
    /// Constant error of the rate, parts per billion.
    pub skew_ppb: f64,
    /// How temperature moves the rate: (amplitude, parts per billion; period, s) of
    /// sines.
    pub wander: Vec<(f64, f64)>,
}

impl Oscillator {
    /// The counter at a true time, ns after the start.
    pub fn counter(&self, t: u64) -> TscCycles {
        let seconds = t as f64 / 1e9;
        let wander = self.wander.iter().map(|(amplitude, period)| {
            amplitude * period / TAU * (1.0 - (TAU * seconds / period).cos())
        });
        let ahead_ns = self.skew_ppb * seconds + wander.sum::<f64>();
        // 2^-16 ns, so that the counter has steps of its own only.
        let local = (i128::from(t) << 16) + (ahead_ns * 65_536.0) as i128;
        let cycles = (local * i128::from(self.hertz) / 1_000_000_000) >> 16;
        TscCycles(u64::try_from(1_000_000_000_000 + cycles).unwrap_or(0))
    }
}

/// Random numbers, the same in every run (SplitMix64: Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// From 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

/// The way to the reference and back.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Least delay there and back, ns: their difference is the asymmetry, of which
    /// nobody can know.
    pub least_ns: [u64; 2],
    /// How long the reference takes from its first reading to its last, ns.
    pub served_ns: u64,
    /// Mean of the exponential delay on top, each way, ns.
    pub jitter_ns: f64,
    /// Share of the ways that are congested...
    pub congested: f64,
    /// ...and their mean delay more, ns.
    pub congestion_ns: f64,
}

impl Path {
    fn delay(&self, way: usize, random: &mut Random) -> u64 {
        let mut delay = random.exponential(self.jitter_ns);
        if random.uniform() < self.congested {
            delay += random.exponential(self.congestion_ns);
        }
        self.least_ns[way] + delay as u64
    }

    /// A look at the reference that begins at true time `t`; `reference` gives its
    /// reading, ns, at a true time.
    pub fn bracket(
        &self,
        t: u64,
        counter: &Oscillator,
        reference: impl Fn(u64) -> u64,
        random: &mut Random,
    ) -> Bracket {
        let there = t + self.delay(0, random);
        let answered = there + self.served_ns;
        let back = answered + self.delay(1, random);
        Bracket {
            tsc: [t, back].map(|t| counter.counter(t)),
            real: [there, answered].map(|t| RealNs(reference(t))),
        }
    }
}

/// A host whose counter and clock are known exactly: the clock's rate changes at given
/// times, as under NTP.
#[derive(Clone, Debug)]
pub struct Host {
    /// Rate of the counter, Hz.
    pub hertz: u64,
    /// (from, ppb): time, ns after the start, and rate of the clock from then.
    pub slews: Vec<(u64, i64)>,
}

impl Host {
    /// The counter at a true time, ns after the start.
    pub fn cycles(&self, t: u64) -> TscCycles {
        let cycles = u128::from(t) * u128::from(self.hertz) / 1_000_000_000;
        TscCycles(1_000_000_000_000 + u64::try_from(cycles).unwrap_or(0))
    }

    /// The host's clock then, ns since the epoch.
    pub fn real(&self, t: u64) -> u64 {
        let mut real = i128::from(EPOCH + t);
        for (index, (from, ppb)) in self.slews.iter().enumerate() {
            let to = self.slews.get(index + 1).map_or(u64::MAX, |next| next.0);
            let span = t.min(to).saturating_sub(*from);
            real += i128::from(span) * i128::from(*ppb) / 1_000_000_000;
        }
        u64::try_from(real).unwrap_or(0)
    }

    /// CLOCK_MONOTONIC then: slewed alike, and never set.
    pub fn mono(&self, t: u64) -> MonoNs {
        MonoNs(self.real(t) - EPOCH)
    }

    /// A bracket that begins at `t`, `gaps` ns between its four readings.
    pub fn bracket(&self, t: u64, gaps: [u64; 3]) -> Bracket {
        let [first, second, third] = gaps;
        let end = t + first + second + third;
        Bracket {
            tsc: [self.cycles(t), self.cycles(end)],
            real: [
                RealNs(self.real(t + first)),
                RealNs(self.real(t + first + second)),
            ],
        }
    }

    /// A cross-timestamp around such a bracket.
    pub fn cross(&self, t: u64, gaps: [u64; 3]) -> CrossTimestamp {
        let Bracket { tsc, real } = self.bracket(t, gaps);
        let end = t + gaps.iter().sum::<u64>();
        CrossTimestamp {
            mono: [self.mono(t), self.mono(end)],
            tsc: Some(tsc),
            real,
            tai: TaiNs(real[0].0 + 37_000_000_000),
            boot: None,
            offset: None,
        }
    }
}
