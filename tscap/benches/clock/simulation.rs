//! The feed-forward clock beside a feedback clock, both fed by the same exchanges
//! with a server, on scripts of which the true time is known.

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::{Spread, quantile};

use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::script::{
    BEFORE_S, CONGESTION, LEVEL_SHIFTS, S, SLEW_S, Script, always_congested, oscillator, quiet,
    scenarios, slew, step,
};
use crate::settling::Settling;
use crate::subjects::{Errors, Subjects};

/// How long the reference is away (figure 7), s.
const AWAY_S: u64 = 7_200;

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
    pub settled: Both,
    /// The same when the path is congested from the start.
    pub settled_congested: Both,
    /// The same after the reference was set by a second.
    pub stepped: Both,
    /// The same after the reference was slewed, from the end of that on.
    pub slewed: Both,
    /// Median distance from the reference while it is slewed, µs.
    pub slewed_off_us: Both,
    /// After two hours without the reference: error / stated bound, the worst of
    /// that time.
    pub away_of_bound: Spread,
    /// Stated bound at the end of that time, µs.
    pub away_bound_us: Spread,
    /// Samples until it is back within 50 µs; 3600 if it never is.
    pub back: Both,
}

/// A figure of each clock.
#[derive(Debug, Serialize)]
pub struct Both {
    /// The feed-forward clock's.
    pub feed_forward: Spread,
    /// The servo's.
    pub servo: Spread,
}

impl Both {
    fn of(series: impl Iterator<Item = [f64; 2]>) -> Self {
        let (feed_forward, servo) = series.map(<(f64, f64)>::from).unzip();
        Self {
            feed_forward: Spread::of(feed_forward),
            servo: Spread::of(servo),
        }
    }
}

/// Runs everything: `rounds` random series of `hours` each.
pub fn measure(rounds: u32, hours: u64) -> Result<Simulation> {
    let seeds = || (0..u64::from(rounds)).map(|round| 1_000 + round);
    let mut found = Vec::new();
    for (name, script) in scenarios() {
        eprintln!("{name}");
        let results = each(seeds(), |seed| series(seed, &script, hours))?;
        let figure = |of: fn(&[f64; 4]) -> f64| Spread::of(results.iter().map(of).collect());
        found.push(Scenario {
            name,
            feed_forward_iqr_us: figure(|it| it[0]),
            servo_iqr_us: figure(|it| it[1]),
            feed_forward_median_us: figure(|it| it[2]),
            servo_median_us: figure(|it| it[3]),
        });
    }
    eprintln!("start, a step, a slew, and two hours without the reference");
    let starts = |script: Script| each(seeds(), |seed| start(seed, &script));
    let (step, slew) = (step(BEFORE_S), slew());
    let steps = each(seeds(), |seed| change(seed, &step, 0))?;
    let slews = each(seeds(), |seed| change(seed, &slew, SLEW_S))?;
    let aways = each(seeds(), holdover)?;
    Ok(Simulation {
        rounds,
        scenarios: found,
        settled: Both::of(starts(quiet())?.into_iter()),
        settled_congested: Both::of(starts(always_congested())?.into_iter()),
        stepped: Both::of(steps.iter().map(|it| it.back)),
        slewed: Both::of(slews.iter().map(|it| it.back)),
        slewed_off_us: Both::of(slews.iter().map(|it| it.off_us)),
        away_of_bound: Spread::of(aways.iter().map(|it| it.of_bound).collect()),
        away_bound_us: Spread::of(aways.iter().map(|it| it.bound_us).collect()),
        back: Both::of(aways.iter().map(|it| it.back)),
    })
}

fn each<T>(seeds: impl Iterator<Item = u64>, run: impl Fn(u64) -> Result<T>) -> Result<Vec<T>> {
    seeds.map(run).collect()
}

fn subjects(seed: u64, script: &Script) -> Result<Subjects<'_>> {
    Subjects::new(seed, script, oscillator(), 1)
}

/// Errors half a second after the exchange of a second.
fn half_a_second_after(subjects: &Subjects, second: u64) -> Errors {
    subjects.errors(second * S + S / 2)
}

/// Interquartile ranges and medians of both, µs, once both are settled.
fn series(seed: u64, script: &Script, hours: u64) -> Result<[f64; 4]> {
    let mut both = subjects(seed, script)?;
    let (mut ours, mut servos) = (Vec::new(), Vec::new());
    for second in 2..(hours + 1) * 3_600 {
        both.exchange(second);
        if second >= 3_600 {
            let errors = half_a_second_after(&both, second);
            ours.push(errors.of_each[0]);
            servos.push(errors.of_each[1]);
        }
    }
    let (ours, servos) = (quartiles(ours)?, quartiles(servos)?);
    Ok([ours[2] - ours[0], servos[2] - servos[0], ours[1], servos[1]].map(|ns| ns / 1e3))
}

fn quartiles(mut errors: Vec<f64>) -> Result<[f64; 3]> {
    errors.sort_by(f64::total_cmp);
    let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&errors, share));
    low.zip(median)
        .zip(high)
        .map(|((low, median), high)| [low, median, high])
        .context("no errors")
}

/// Samples until each clock stays within 50 µs for a minute, of an hour.
fn start(seed: u64, script: &Script) -> Result<[f64; 2]> {
    let mut both = subjects(seed, script)?;
    let mut settling = [Settling::default(); 2];
    for second in 1..3_600 {
        let errors = half_a_second_after(&both, second);
        take(&mut settling, second + 1, errors);
        both.exchange(second + 1);
    }
    Ok(settling.map(Settling::samples))
}

fn take([ours, servos]: &mut [Settling; 2], sample: u64, errors: Errors) {
    ours.take(sample, errors.of_each[0]);
    servos.take(sample, errors.of_each[1]);
}

/// Samples until each is back after second `from`, of an hour.
fn back(both: &mut Subjects, from: u64) -> [f64; 2] {
    let mut settling = [Settling::default(); 2];
    for sample in 1..=3_600 {
        both.exchange(from + sample);
        take(
            &mut settling,
            sample,
            half_a_second_after(both, from + sample),
        );
    }
    settling.map(Settling::samples)
}

/// What became of both while the reference was changed, and then.
struct Changed {
    /// Median distance meanwhile, µs; 0 if it took no time.
    off_us: [f64; 2],
    /// Samples from then until each is back.
    back: [f64; 2],
}

/// An hour of exchanges before the reference is changed, which takes `seconds`, and one
/// then.
fn change(seed: u64, script: &Script, seconds: u64) -> Result<Changed> {
    let mut both = subjects(seed, script)?;
    for second in 2..BEFORE_S {
        both.exchange(second);
    }
    let until = BEFORE_S + seconds;
    let (mut ours, mut servos) = (vec![0.0], vec![0.0]);
    for second in BEFORE_S..until {
        both.exchange(second);
        let errors = half_a_second_after(&both, second);
        ours.push(errors.of_each[0].abs());
        servos.push(errors.of_each[1].abs());
    }
    Ok(Changed {
        off_us: [quartiles(ours)?[1] / 1e3, quartiles(servos)?[1] / 1e3],
        // The first exchange after it is the first sample.
        back: back(&mut both, until - 1),
    })
}

/// Two hours without the reference.
struct Holdover {
    /// Error / bound at its worst.
    of_bound: f64,
    /// The bound at the end, µs.
    bound_us: f64,
    /// Samples until each is back.
    back: [f64; 2],
}

/// An hour of exchanges, two hours without any, and an hour again.
fn holdover(seed: u64) -> Result<Holdover> {
    let script = quiet();
    let mut both = subjects(seed, &script)?;
    for second in 2..BEFORE_S {
        both.exchange(second);
    }
    let (mut of_bound, mut bound) = (0.0, 0.0);
    for second in BEFORE_S..BEFORE_S + AWAY_S {
        let errors = half_a_second_after(&both, second);
        of_bound = f64::max(of_bound, errors.of_each[0].abs() / errors.bound);
        bound = errors.bound;
    }
    Ok(Holdover {
        of_bound,
        bound_us: bound / 1e3,
        back: back(&mut both, BEFORE_S + AWAY_S),
    })
}

impl Section for Simulation {
    fn targets(&self) -> Vec<Target> {
        let congestion = self.scenarios.iter().find(|it| it.name == CONGESTION);
        let ratio = |ours: f64, servos: f64| servos / ours;
        let congested = congestion.map_or(0.0, |it| {
            it.feed_forward_iqr_us.with(&it.servo_iqr_us, ratio).min
        });
        let shifts = self.scenarios.iter().find(|it| it.name == LEVEL_SHIFTS);
        let shifted = shifts.map_or(0.0, |it| {
            it.feed_forward_iqr_us.with(&it.servo_iqr_us, ratio).min
        });
        let slewed = self.slewed.feed_forward.with(&self.slewed.servo, ratio);
        let settled = &self.settled_congested;
        vec![
            Target::at_least(
                "IQR, servo / feed-forward: congestion, least",
                congested,
                4.0,
            ),
            Target::at_least("the same: level shifts, least", shifted, 1.0),
            Target::at_most(
                "samples until settled, congestion",
                settled.feed_forward.median,
                10.0,
            ),
            Target::at_least("the same of the servo", settled.servo.median, 100.0),
            Target::at_most(
                "2 h without: error / bound, most",
                self.away_of_bound.max,
                1.0,
            ),
            Target::at_most("samples until back, most", self.back.feed_forward.max, 1.0),
            Target::at_most(
                "samples until back after a step, most",
                self.stepped.feed_forward.max,
                10.0,
            ),
            Target::at_least(
                "the same after a slew, servo / feed-forward, least",
                slewed.min,
                4.0,
            ),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let scenarios = self.scenarios.iter().map(|scenario| {
            let figures = [
                &scenario.feed_forward_iqr_us,
                &scenario.servo_iqr_us,
                &scenario.feed_forward_median_us,
                &scenario.servo_median_us,
            ];
            row(scenario.name, figures.map(|figure| show(figure, 1)))
        });
        let both = |name, of: &Both| row(name, [&of.feed_forward, &of.servo].map(|it| show(it, 0)));
        let settling = vec![
            both("from the start", &self.settled),
            both("from the start, congestion", &self.settled_congested),
            both("after a step of 1 s", &self.stepped),
            both("after a slew of 500 ppm for 100 s", &self.slewed),
            both("after 2 h without the reference", &self.back),
            both(
                "off meanwhile in that slew, median, µs",
                &self.slewed_off_us,
            ),
            row("bound after these 2 h, µs", [show(&self.away_bound_us, 0)]),
        ];
        let title = format!(
            "simulated: error against true time, µs; {} random series",
            self.rounds
        );
        vec![
            Table::figures(
                title,
                &["", "IQR", "of the servo", "median", "of the servo"],
                scenarios.collect(),
            ),
            Table::figures(
                "samples until it stays within 50 µs for a minute",
                &["", "feed-forward", "the servo"],
                settling,
            ),
        ]
    }
}
