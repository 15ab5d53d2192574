//! Every stated bound against a simulated kernel, whose true time is known.
//!
//! A run is a class of events and a seed. One that fails is run alone by
//! `TSCAP_SCENARIO=step:17 cargo test -p tscap-references --test bounds -- --nocapture`;
//! `TSCAP_SCENARIOS=10000` runs so many of all classes.

mod capture;
mod check;
mod device;
mod events;
mod host;
mod log;
mod noise;
mod ntp;
mod reader;
mod scenario;
mod steering;
mod timekeeper;

use std::env;

use check::{CHECKS, Check, Outcome, run};
use events::{CLASSES, Class};
use noise::Kind;
use scenario::Scenario;

/// Of all classes, on every push; by night there are more.
const SCENARIOS: u64 = 100;

/// Of more than [`SCENARIOS`], what once was outside of a bound.
const ONCE_OUTSIDE: &[(Class, u64)] = &[
    (Class::Coarse, 66),
    (Class::Dither, 1_265),
    (Class::Pair, 163),
    (Class::Pulse, 452),
    (Class::Stall, 576),
    (Class::Step, 83),
    (Class::Step, 287),
    (Class::TaiSet, 405),
];

/// Which seeds of a class are to be run.
fn seeds(class: Class) -> Vec<u64> {
    if let Ok(alone) = env::var("TSCAP_SCENARIO") {
        let (name, seed) = alone.split_once(':').unwrap_or((&alone, ""));
        if name != class.name() {
            return Vec::new();
        }
        if !seed.is_empty() {
            return vec![seed.parse().expect("TSCAP_SCENARIO is CLASS:SEED")];
        }
    }
    let all =
        env::var("TSCAP_SCENARIOS").map(|all| all.parse().expect("TSCAP_SCENARIOS is a number"));
    let all = 0..all.unwrap_or(SCENARIOS).div_ceil(CLASSES);
    let once_outside = ONCE_OUTSIDE.iter().filter(|(of, _)| *of == class);
    let once_outside = once_outside.map(|(_, seed)| *seed);
    all.clone()
        .chain(once_outside.filter(|seed| !all.contains(seed)))
        .collect()
}

fn holds(class: Class) {
    let is_alone = env::var_os("TSCAP_SCENARIO").is_some();
    let mut broken = Vec::new();
    for seed in seeds(class) {
        let scenario = Scenario::new(class, seed);
        let Some(outcome) = run(&scenario) else {
            println!("{}:{seed} did not settle", class.name());
            continue;
        };
        if is_alone {
            println!("{scenario:#?}\n{outcome:?}");
        }
        broken.extend(useless(&scenario, &outcome));
        let outside = |check: &Check| outcome.of(*check).outside > 0;
        let outside = CHECKS.into_iter().filter(outside);
        broken.extend(outside.map(|check| line(&scenario, check, &outcome)));
    }
    assert!(broken.is_empty(), "{}\n", broken.join("\n"));
}

/// A bound that is wide enough holds always, and an ambiguous stamp is never wrong: where
/// nobody sets the clock there are none, and a straight clock is known to a bracket.
fn useless(scenario: &Scenario, outcome: &Outcome) -> Option<String> {
    let (most_ns, is_steady) = match (scenario.class, scenario.noise) {
        // A reading that was interrupted may hide a step.
        _ if !scenario.reads_offset => (u64::MAX, false),
        (Class::Dither, Kind::Quiet) => (60, true),
        // The line is met again after an interrupted reading.
        (Class::Dither, Kind::Busy) => (1_000, true),
        (Class::Dither, Kind::Uneven) => (250, true),
        (
            Class::Ntp
            | Class::Servo
            | Class::Smear
            | Class::Ptp
            | Class::PtpSteered
            | Class::PtpSet,
            Kind::Quiet,
        ) => (400, true),
        // One in some thousand gaps between readings is a stall.
        (_, Kind::Uneven) => (u64::MAX, false),
        (
            Class::Ntp
            | Class::Servo
            | Class::Smear
            | Class::Ptp
            | Class::PtpSteered
            | Class::PtpSet,
            _,
        ) => (u64::MAX, true),
        (Class::FastServo | Class::Slew | Class::Pulse, _) => (u64::MAX, true),
        _ => (u64::MAX, false),
    };
    let is_wide = outcome.bound_ns > most_ns;
    (is_wide || is_steady && outcome.ambiguous > 0).then(|| {
        format!(
            "TSCAP_SCENARIO={}:{} ({:?}): {} stamps are ambiguous, and the bound is {} ns",
            scenario.class.name(),
            scenario.seed,
            scenario.noise,
            outcome.ambiguous,
            outcome.bound_ns,
        )
    })
}

fn line(scenario: &Scenario, check: Check, outcome: &Outcome) -> String {
    let found = outcome.of(check);
    let worst = found.worst.expect("one is outside");
    format!(
        "TSCAP_SCENARIO={}:{} ({:?}) {check:?}: {} of {} outside, worst off by {} ns with a bound of {} ns at {:.6} s",
        scenario.class.name(),
        scenario.seed,
        scenario.noise,
        found.outside,
        found.checked,
        worst.error_ns,
        worst.bound_ns,
        worst.at_ns as f64 / 1e9,
    )
}

macro_rules! classes {
    ($($name:ident: $class:ident,)*) => {$(
        #[test]
        fn $name() {
            holds(Class::$class);
        }
    )*};
}

classes! {
    bounds_hold_under_dither: Dither,
    bounds_hold_under_ntp_at_1_hz: Ntp,
    bounds_hold_under_a_servo_at_8_hz: Servo,
    bounds_hold_under_faster_servos: FastServo,
    bounds_hold_under_a_smear: Smear,
    bounds_hold_over_a_leap_second: Leap,
    bounds_hold_over_a_suspend: Suspend,
    bounds_hold_over_changes_of_the_tick: Tick,
    bounds_hold_over_steps: Step,
    bounds_hold_under_slews: Slew,
    bounds_hold_over_pulses: Pulse,
    bounds_hold_over_jumps_of_the_tsc: Jump,
    bounds_hold_over_stalls: Stall,
    bounds_hold_of_ktime_stamps: Ktime,
    bounds_hold_of_tai_stamps: Tai,
    bounds_hold_of_a_ptp_clock: Ptp,
    bounds_hold_of_a_steered_ptp_clock: PtpSteered,
    bounds_hold_of_a_ptp_clock_that_is_set: PtpSet,
    bounds_hold_over_two_events_at_once: Pair,
    bounds_hold_over_bursts_of_steps: Burst,
    bounds_hold_over_steps_every_32_ms: Steps,
    bounds_hold_while_readings_after_an_event_are_wide: Wide,
    bounds_hold_of_a_coarse_counter: Coarse,
    bounds_hold_over_migrations: Migration,
    bounds_hold_where_a_set_clock_is_set_back: Back,
    bounds_hold_where_tai_is_set: TaiSet,
}
