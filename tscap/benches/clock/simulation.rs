//! The feed-forward clock beside a feedback clock, both fed by the same exchanges
//! with a server, on scripts of which the true time is known.

use anyhow::{Context, Result};
use serde::Serialize;
use tscap::clock::scripted::{EPOCH, Oscillator, Path, Random};
use tscap::clock::{FeedForward, Scale};

use crate::common::spread::Spread;
use crate::common::target::{Bound, Target};
use crate::servo::Servo;

const S: u64 = 1_000_000_000;
/// A server on the same network with little traffic, as in section II-C of the paper.
const LAN: Path = Path {
    least_ns: [100_000, 100_000],
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
/// Within this for a minute a clock is settled, ns: three times the delay variation
/// of the quiet path.
const SETTLED_NS: f64 = 50_000.0;
const FOR_A_MINUTE: u64 = 60;
/// How long the reference is away (figure 7), s.
const AWAY_S: u64 = 7_200;
/// Exchanges before that.
const BEFORE_S: u64 = 3_600;

/// Errors of both clocks in one scenario, over several random series.
#[derive(Debug, Serialize)]
pub struct Scenario {
    /// What happens.
    pub name: &'static str,
    /// Interquartile range of the error, µs.
    pub feed_forward_iqr_us: Spread,
    /// The same of the servo.
    pub servo_iqr_us: Spread,
    /// Median of the error, µs: half of the asymmetry can't be known.
    pub feed_forward_median_us: Spread,
    /// The same of the servo.
    pub servo_median_us: Spread,
}

/// What the simulation gave.
#[derive(Debug, Serialize)]
pub struct Simulation {
    /// Random series.
    pub rounds: u32,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// Samples until a clock stays within 50 µs for a minute.
    pub settled: Settled,
    /// The same when the path is congested from the start.
    pub settled_congested: Settled,
    /// After two hours without the reference: error / stated bound, the worst of
    /// that time.
    pub away_of_bound: Spread,
    /// Stated bound at the end of that time, µs.
    pub away_bound_us: Spread,
    /// Samples until it is back within 50 µs.
    pub back: Spread,
    /// The same of the servo.
    pub servo_back: Spread,
}

/// Samples until settled.
#[derive(Debug, Serialize)]
pub struct Settled {
    /// The feed-forward clock.
    pub feed_forward: Spread,
    /// The servo; 3600 if it never is.
    pub servo: Spread,
}

impl Settled {
    fn of(series: Result<Vec<(f64, f64)>>) -> Result<Self> {
        let (feed_forward, servo) = series?.into_iter().unzip();
        Ok(Self {
            feed_forward: Spread::of(feed_forward),
            servo: Spread::of(servo),
        })
    }
}

/// Both clocks, fed alike.
struct Pair {
    counter: Oscillator,
    random: Random,
    clock: FeedForward,
    servo: Servo,
}

/// Errors, ns.
#[derive(Clone, Copy)]
struct Errors {
    feed_forward: f64,
    bound: f64,
    servo: f64,
}

impl Pair {
    fn new(seed: u64, path: &Path) -> Result<Self> {
        let counter = Oscillator {
            hertz: 2_596_130_000,
            skew_ppb: 23_000.0,
            // A cooled machine room (figure 12), which comes on every 200 s, and a day.
            wander: vec![(80.0, 200.0), (30.0, 86_400.0)],
        };
        let mut random = Random(seed);
        let mut look = |t| path.bracket(t, &counter, |t| EPOCH + t, &mut random);
        let (first, second) = (look(0), look(S));
        let clock = FeedForward::new(Scale::NETWORK, &first, &second);
        let mut servo = Servo::new(counter.hertz, &first);
        servo.observe(&first);
        servo.observe(&second);
        Ok(Self {
            clock: clock.context("two readings must be enough")?,
            servo,
            counter,
            random,
        })
    }

    /// Takes the exchange of a second.
    fn exchange(&mut self, second: u64, path: &Path) {
        let reference = |t| EPOCH + t;
        let bracket = path.bracket(second * S, &self.counter, reference, &mut self.random);
        self.clock.observe(&bracket);
        self.servo.observe(&bracket);
    }

    /// Errors half a second after it.
    fn errors(&self, second: u64) -> Errors {
        let t = second * S + S / 2;
        let at = self.counter.counter(t);
        let off = |time: u64| time.wrapping_sub(EPOCH + t).cast_signed() as f64;
        let estimate = self.clock.estimate(at);
        Errors {
            feed_forward: off(estimate.real.0),
            bound: estimate.bound_ns as f64,
            servo: off(self.servo.read(at).0),
        }
    }
}

/// A scenario: the path of the exchange of each second.
type Script = fn(u64) -> Path;

const SCENARIOS: [(&str, Script); 4] = [
    ("quiet", |_| LAN),
    ("congestion", |second| {
        if second % (TRANSFER_S + PAUSE_S) < TRANSFER_S {
            CONGESTED
        } else {
            LAN
        }
    }),
    ("asymmetry of 60 µs", |_| Path {
        least_ns: [100_000, 160_000],
        ..LAN
    }),
    ("level shifts of 300 µs each way", |second| Path {
        least_ns: [100_000 + 300_000 * (second / 3_600 % 2); 2],
        ..LAN
    }),
];

/// Runs everything: `rounds` random series of `hours` each.
pub fn measure(rounds: u32, hours: u64) -> Result<Simulation> {
    let seeds = || (0..u64::from(rounds)).map(|round| 1_000 + round);
    let mut scenarios = Vec::new();
    for (name, script) in SCENARIOS {
        eprintln!("{name}");
        let results: Result<Vec<_>> = seeds().map(|seed| series(seed, script, hours)).collect();
        let results = results?;
        let figure = |of: fn(&[f64; 4]) -> f64| Spread::of(results.iter().map(of).collect());
        scenarios.push(Scenario {
            name,
            feed_forward_iqr_us: figure(|it| it[0]),
            servo_iqr_us: figure(|it| it[1]),
            feed_forward_median_us: figure(|it| it[2]),
            servo_median_us: figure(|it| it[3]),
        });
    }
    eprintln!("start, and two hours without the reference");
    let starts = |path| Settled::of(seeds().map(|seed| start(seed, path)).collect());
    let aways: Result<Vec<_>> = seeds().map(away).collect();
    let aways = aways?;
    Ok(Simulation {
        rounds,
        scenarios,
        settled: starts(&LAN)?,
        settled_congested: starts(&CONGESTED)?,
        away_of_bound: Spread::of(aways.iter().map(|it| it[0]).collect()),
        away_bound_us: Spread::of(aways.iter().map(|it| it[1]).collect()),
        back: Spread::of(aways.iter().map(|it| it[2]).collect()),
        servo_back: Spread::of(aways.iter().map(|it| it[3]).collect()),
    })
}

/// Interquartile ranges and medians of both, µs, once both are settled.
fn series(seed: u64, script: Script, hours: u64) -> Result<[f64; 4]> {
    let mut pair = Pair::new(seed, &script(0))?;
    let (mut ours, mut servos) = (Vec::new(), Vec::new());
    for second in 2..(hours + 1) * 3_600 {
        pair.exchange(second, &script(second));
        if second >= 3_600 {
            let errors = pair.errors(second);
            ours.push(errors.feed_forward);
            servos.push(errors.servo);
        }
    }
    let ours = quartiles(ours);
    let servos = quartiles(servos);
    Ok([ours[2] - ours[0], servos[2] - servos[0], ours[1], servos[1]].map(|ns| ns / 1e3))
}

fn quartiles(mut errors: Vec<f64>) -> [f64; 3] {
    errors.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| errors[(errors.len() - 1) * quarter / 4])
}

/// Samples until each clock stays within 50 µs for a minute, of an hour.
fn start(seed: u64, path: &Path) -> Result<(f64, f64)> {
    let mut pair = Pair::new(seed, path)?;
    let mut ours = Settling::default();
    let mut servos = Settling::default();
    for second in 1..3_600 {
        let errors = pair.errors(second);
        ours.take(second + 1, errors.feed_forward);
        servos.take(second + 1, errors.servo);
        pair.exchange(second + 1, path);
    }
    Ok((ours.samples(), servos.samples()))
}

/// Finds the first of a minute of samples within the limit.
#[derive(Default)]
struct Settling {
    since: u64,
    latest: u64,
}

impl Settling {
    fn take(&mut self, sample: u64, error_ns: f64) {
        let is_settled = self.latest.saturating_sub(self.since) >= FOR_A_MINUTE;
        if is_settled {
            return;
        }
        if error_ns.abs() > SETTLED_NS {
            self.since = sample;
        }
        self.latest = sample;
    }

    fn samples(&self) -> f64 {
        (self.since + 1) as f64
    }
}

/// An hour of exchanges, two hours without any, and an hour again: error / bound at
/// its worst, the bound at the end, and the samples until each is back.
fn away(seed: u64) -> Result<[f64; 4]> {
    let mut pair = Pair::new(seed, &LAN)?;
    for second in 2..BEFORE_S {
        pair.exchange(second, &LAN);
    }
    let (mut worst, mut bound) = (0.0, 0.0);
    for second in BEFORE_S..BEFORE_S + AWAY_S {
        let errors = pair.errors(second);
        worst = f64::max(worst, errors.feed_forward.abs() / errors.bound);
        bound = errors.bound;
    }
    let mut ours = Settling::default();
    let mut servos = Settling::default();
    for sample in 1..=3_600 {
        let second = BEFORE_S + AWAY_S + sample;
        pair.exchange(second, &LAN);
        let errors = pair.errors(second);
        ours.take(sample, errors.feed_forward);
        servos.take(sample, errors.servo);
    }
    Ok([worst, bound / 1e3, ours.samples(), servos.samples()])
}

impl Simulation {
    /// What is wanted (issue 8).
    pub fn targets(&self) -> Vec<Target> {
        let congestion = self.scenarios.iter().find(|it| it.name == "congestion");
        let ratio = congestion.map_or(0.0, |it| {
            let ratio = |ours: f64, servos: f64| servos / ours;
            it.feed_forward_iqr_us.with(&it.servo_iqr_us, ratio).min
        });
        let target = |name: &str, value, bound| Target {
            name: name.into(),
            value,
            bound,
            asserted: true,
        };
        vec![
            target(
                "IQR, servo / feed-forward: congestion, least",
                ratio,
                Bound::AtLeast(4.0),
            ),
            target(
                "samples until settled, congestion",
                self.settled_congested.feed_forward.median,
                Bound::AtMost(10.0),
            ),
            target(
                "the same of the servo",
                self.settled_congested.servo.median,
                Bound::AtLeast(100.0),
            ),
            target(
                "2 h without: error / bound, most",
                self.away_of_bound.max,
                Bound::AtMost(1.0),
            ),
            target(
                "samples until back, most",
                self.back.max,
                Bound::AtMost(1.0),
            ),
        ]
    }
}
