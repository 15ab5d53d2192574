//! The classes of what happens to a host's clock.

use tscap_clock::StampSource;

use super::host::Event;
use super::noise::{either_sign, log_uniform};
use super::scenario::{MS, S, SETTLED, Scenario, US};

/// A class of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing but the kernel's own dither, between two multipliers.
    Dither,
    /// A time daemon that corrects once a second, by frequency or by phase.
    Ntp,
    /// A servo at 8 Hz, as phc2sys, to 5 ppm.
    Servo,
    /// At 16 Hz ±5 ppm, 32 Hz ±50 ppm, and others up to 64 Hz.
    FastServo,
    /// A leap second smeared: the rate is ramped.
    Smear,
    /// A leap second inserted or deleted.
    Leap,
    /// The machine is suspended; its TSC goes on, stands or begins anew.
    Suspend,
    /// `adjtimex --tick`, up to ±10 %.
    Tick,
    /// The clock is set, by 20 ns to hours.
    Step,
    /// adjtime, and frequencies of up to ±500 ppm for seconds.
    Slew,
    /// +500 ppm for 12 ms.
    Pulse,
    /// The TSC jumps forward or back, also back by less than a drain.
    Jump,
    /// Readings that are late by seconds, over all of the above.
    Stall,
    /// The clock is set by less than a bracket, under `ktime`.
    Ktime,
    /// All that there is, under `tai`.
    Tai,
    /// A PTP hardware clock by `precise`, beside phc2sys.
    Ptp,
    /// The same, which ptp4l steers: 8 Hz, ±5 ppm.
    PtpSteered,
    /// Two or three of the events below in one drain or in neighbouring ones, while stamps
    /// wait as long as they ever do.
    Pair,
    /// The clock is set several times within some drains, as by chrony's `makestep`.
    Burst,
    /// It is set every 32 ms, as a servo does that never slews.
    Steps,
    /// Readings are interrupted for up to half a second after an event.
    Wide,
    /// A counter of 19.2 to 62.5 MHz.
    Coarse,
    /// A virtual machine moves: its TSC jumps, and runs by up to 100 ppm at another rate.
    Migration,
    /// The clock is set, and set back within a drain.
    Back,
    /// TAI − UTC is set, forward and back.
    TaiSet,
    /// As `Ptp` or `PtpSteered`; the device is also set, by 20 µs to minutes, and set back.
    PtpSet,
}

/// How many there are.
pub const CLASSES: u64 = Class::PtpSet as u64 + 1;

impl Class {
    /// As in the environment.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Puts it into a scenario whose clock is corrected by `base` ppb.
    pub fn happens(self, scenario: &mut Scenario, base: i64) {
        match self {
            Self::Dither => {}
            Self::Ntp => ntp(scenario, base),
            Self::Servo => servo(scenario, base, 8, 5_000),
            Self::FastServo => fast_servo(scenario, base),
            Self::Smear => smear(scenario, base),
            Self::Leap => leap(scenario),
            Self::Suspend => suspend(scenario),
            Self::Tick => tick(scenario),
            Self::Step => step(scenario),
            Self::Slew => slew(scenario, base),
            Self::Pulse => pulse(scenario, base),
            Self::Jump => jump(scenario),
            Self::Stall => stall(scenario, base),
            Self::Ktime => ktime(scenario, base),
            Self::Tai => tai(scenario, base),
            Self::Ptp | Self::PtpSteered | Self::PtpSet => ptp(scenario, base),
            Self::Pair => pair(scenario, base),
            Self::Burst => burst(scenario),
            Self::Steps => steps(scenario),
            Self::Wide => wide(scenario, base),
            Self::Coarse => coarse(scenario, base),
            Self::Migration => migration(scenario, base),
            Self::Back => back(scenario),
            Self::TaiSet => tai_set(scenario),
        }
    }
}

fn ntp(scenario: &mut Scenario, base: i64) {
    let most = log_uniform(&mut scenario.random, 50, 20_000).cast_signed();
    if scenario.random.bool() {
        scenario.each(S, |scenario, _| {
            Event::Frequency(base + scenario.random.i64(-most..=most))
        });
    } else {
        scenario.each(4 * S, |scenario, _| {
            Event::Offset(scenario.random.i64(-most..=most))
        });
    }
}

fn servo(scenario: &mut Scenario, base: i64, hertz: u64, most_ppb: i64) {
    scenario.each(S / hertz, |scenario, _| {
        Event::Frequency(base + scenario.random.i64(-most_ppb..=most_ppb))
    });
}

fn fast_servo(scenario: &mut Scenario, base: i64) {
    let servos = [
        (16, 5_000),
        (32, 50_000),
        (8, 200_000),
        (10, 1_000),
        (64, 5_000),
        (24, 1_000),
    ];
    let (hertz, most_ppb) = servos[scenario.random.usize(0..servos.len())];
    servo(scenario, base, hertz, most_ppb);
}

fn smear(scenario: &mut Scenario, base: i64) {
    // chrony's `smoothtime`, and a linear smear of 11.6 ppm that begins and ends.
    let ppb_per_s = log_uniform(&mut scenario.random, 1, 2_000) as f64;
    let at = scenario.moment();
    let every_ns = [S, S, S / 4][scenario.random.usize(0..3)];
    let is_linear = scenario.random.bool();
    scenario.each(every_ns, |_, now| {
        let since = now.saturating_sub(at) as f64 / S as f64;
        let ppb = if !is_linear {
            (since * ppb_per_s) as i64
        } else if since > 0.0 {
            11_574
        } else {
            0
        };
        Event::Frequency(base + ppb)
    });
}

fn leap(scenario: &mut Scenario) {
    let at = scenario.moment();
    let seconds = [1, -1][scenario.random.usize(0..2)];
    scenario.happens(at, Event::Leap(seconds));
}

fn suspend(scenario: &mut Scenario) {
    for _ in 0..scenario.random.u8(1..3) {
        let at = scenario.moment();
        let ns = log_uniform(&mut scenario.random, 100 * MS, 8 * 3_600 * S);
        let cycles = match scenario.random.u8(0..3) {
            0 => 0,
            // It begins anew.
            1 => -scenario
                .random
                .i64(299_000_000_000_000..299_900_000_000_000),
            _ => {
                let cycles =
                    u128::from(ns) * u128::from(scenario.machine.cycles_per_s) / u128::from(S);
                i64::try_from(cycles).expect("hours are few cycles")
            }
        };
        let is_first = scenario
            .events
            .iter()
            .all(|(_, event)| !matches!(event, Event::Suspend { .. }));
        let cycles = if is_first { cycles } else { cycles.max(0) };
        scenario.happens(
            at,
            Event::Suspend {
                ns: ns.cast_signed(),
                cycles,
            },
        );
    }
}

fn tick(scenario: &mut Scenario) {
    for _ in 0..scenario.random.u8(1..5) {
        let at = scenario.moment();
        let us = scenario.random.i64(9_000..=11_000);
        scenario.happens(at, Event::Tick(us));
    }
}

/// From 20 ns to hours, both ways.
fn some_step(scenario: &mut Scenario) -> Event {
    let most = [US, MS, 3 * 3_600 * S][scenario.random.usize(0..3)];
    Event::Step(either_sign(&mut scenario.random, 20, most))
}

fn step(scenario: &mut Scenario) {
    for _ in 0..scenario.random.u8(1..6) {
        let at = scenario.moment();
        let step = some_step(scenario);
        scenario.happens(at, step);
        if scenario.random.u8(0..3) == 0 {
            scenario.is_stormy(at);
        }
    }
}

fn slew(scenario: &mut Scenario, base: i64) {
    for _ in 0..scenario.random.u8(1..6) {
        let at = scenario.moment();
        let event = if scenario.random.bool() {
            Event::Slew(either_sign(&mut scenario.random, 1, 3_000))
        } else {
            Event::Frequency(base + scenario.random.i64(-400_000..=400_000))
        };
        scenario.happens(at, event);
    }
}

fn pulse(scenario: &mut Scenario, base: i64) {
    for _ in 0..scenario.random.u8(1..6) {
        let at = scenario.moment();
        let ppb = [500_000, -500_000, 50_000, 5_000][scenario.random.usize(0..4)];
        let length = if scenario.random.bool() {
            12 * MS
        } else {
            log_uniform(&mut scenario.random, 100 * US, 100 * MS)
        };
        scenario.happens(at, Event::Frequency((base + ppb).clamp(-500_000, 500_000)));
        scenario.happens(at + length, Event::Frequency(base));
    }
}

fn some_jump(scenario: &mut Scenario) -> Event {
    let per_us = scenario.machine.cycles_per_s / 1_000_000;
    // Back by less than a drain, by more, and to a counter that began anew.
    let most = [9_000, 5_000_000, 20_000_000_000][scenario.random.usize(0..3)] * per_us;
    Event::Jump(either_sign(&mut scenario.random, 20 * per_us, most))
}

fn jump(scenario: &mut Scenario) {
    for _ in 0..scenario.random.u8(1..3) {
        let at = scenario.moment();
        let jump = some_jump(scenario);
        scenario.happens(at, jump);
    }
}

fn stall(scenario: &mut Scenario, base: i64) {
    match scenario.random.u8(0..8) {
        0 => fast_servo(scenario, base),
        1 => step(scenario),
        2 => pulse(scenario, base),
        3 => slew(scenario, base),
        4 => suspend(scenario),
        5 => {
            suspend(scenario);
            jump(scenario);
        }
        6 => tick(scenario),
        _ => jump(scenario),
    }
    let events: Vec<u64> = scenario.events.iter().map(|(at, _)| *at).collect();
    for _ in 0..scenario.random.u8(1..4) {
        let at = if scenario.random.bool() {
            events[scenario.random.usize(0..events.len())].max(SETTLED + MS)
        } else {
            scenario.moment()
        };
        scenario.stalls_over(at, 4 * S);
        if scenario.random.bool() {
            scenario.is_stormy(at);
        }
    }
}

fn ktime(scenario: &mut Scenario, base: i64) {
    scenario.source = StampSource::Ktime;
    for _ in 0..scenario.random.u8(1..4) {
        let at = scenario.moment();
        let ns = match scenario.random.u8(0..4) {
            0 => either_sign(&mut scenario.random, 150, 3_600 * S),
            _ => either_sign(&mut scenario.random, 1, 150),
        };
        scenario.happens(at, Event::Step(ns));
        if scenario.random.u8(0..4) == 0 {
            scenario.is_stormy(at);
        }
    }
    match scenario.random.u8(0..6) {
        0 => servo(scenario, base, 16, 5_000),
        1 => suspend(scenario),
        2 => leap(scenario),
        _ => {}
    }
}

fn tai(scenario: &mut Scenario, base: i64) {
    scenario.source = StampSource::Tai;
    match scenario.random.u8(0..5) {
        0 => step(scenario),
        1 => leap(scenario),
        2 => suspend(scenario),
        3 => servo(scenario, base, 16, 5_000),
        _ => {
            let (at, seconds) = (scenario.moment(), scenario.random.i64(30..40));
            scenario.happens(at, Event::Tai(seconds));
        }
    }
}

fn ptp(scenario: &mut Scenario, base: i64) {
    scenario.has_device = true;
    servo(scenario, base, 8, 1_000);
}

/// Of stamps that wait as long as they ever do, half of the time.
fn waits(scenario: &mut Scenario, sources: &[StampSource]) {
    scenario.source = sources[scenario.random.usize(0..sources.len())];
    scenario.holds_a_drain = scenario.random.bool();
}

const SOURCES: [StampSource; 4] = [
    StampSource::Tsc,
    StampSource::Tsc,
    StampSource::Ktime,
    StampSource::Tai,
];

/// A step, a jump, another offset of TAI, a suspend, a migration or a bend.
fn some_event(scenario: &mut Scenario, at: u64, base: i64) -> Event {
    match scenario.random.u8(0..10) {
        0..4 => some_step(scenario),
        4..7 => some_jump(scenario),
        7 => some_migration(scenario, at),
        8 => Event::Tai(scenario.random.i64(30..40)),
        _ => Event::Frequency(base + scenario.random.i64(-400_000..=400_000)),
    }
}

fn pair(scenario: &mut Scenario, base: i64) {
    waits(scenario, &SOURCES);
    for _ in 0..scenario.random.u8(1..6) {
        let mut at = scenario.moment();
        for _ in 0..scenario.random.u8(2..4) {
            let event = some_event(scenario, at, base);
            scenario.happens(at, event);
            at += if scenario.random.bool() {
                log_uniform(&mut scenario.random, 1, 30 * MS)
            } else {
                scenario.random.u64(0..2 * scenario.drain_ns)
            };
        }
        if scenario.random.u8(0..4) == 0 {
            scenario.is_stormy(at);
        }
    }
}

fn burst(scenario: &mut Scenario) {
    waits(scenario, &SOURCES);
    for _ in 0..scenario.random.u8(1..4) {
        let mut at = scenario.moment();
        let most = log_uniform(&mut scenario.random, 10 * US, 15 * MS);
        for _ in 0..scenario.random.u8(2..9) {
            let step = some_step(scenario);
            scenario.happens(at, step);
            at += scenario.random.u64(0..most);
        }
    }
}

fn steps(scenario: &mut Scenario) {
    waits(scenario, &SOURCES);
    let most = log_uniform(&mut scenario.random, US, 20 * MS);
    scenario.each(32 * MS, |scenario, _| {
        Event::Step(either_sign(&mut scenario.random, 20, most))
    });
}

fn wide(scenario: &mut Scenario, base: i64) {
    waits(
        scenario,
        &[StampSource::Tsc, StampSource::Tsc, StampSource::Ktime],
    );
    for _ in 0..scenario.random.u8(1..4) {
        let at = scenario.moment();
        let event = some_event(scenario, at, base);
        scenario.happens(at, event);
        let before = scenario.random.u64(0..15 * MS);
        let after = log_uniform(&mut scenario.random, 5 * MS, 500 * MS);
        scenario.storms.push((at - before, at + after));
    }
}

fn coarse(scenario: &mut Scenario, base: i64) {
    let kilohertz = [
        10_000, 13_000, 19_200, 24_000, 25_000, 38_400, 54_000, 62_500, 100_000, 1_000_000,
    ];
    let hertz = 1_000 * kilohertz[scenario.random.usize(0..kilohertz.len())];
    let hertz = hertz + scenario.random.u64(0..hertz / 10_000);
    let machine = &mut scenario.machine;
    if scenario.random.bool() {
        // The kernel counts by it.
        machine.cycles_per_s = hertz;
    } else {
        machine.cycles_per_count = (machine.cycles_per_s / hertz).max(1);
    }
    match scenario.random.u8(0..8) {
        0 => step(scenario),
        1 => jump(scenario),
        2 => servo(scenario, base, 16, 5_000),
        3 => pulse(scenario, base),
        4 => stall(scenario, base),
        5 => pair(scenario, base),
        _ => {}
    }
    scenario.source = StampSource::Tsc;
}

/// A jump alone where the raw clock has no three readings on either side of it.
fn some_migration(scenario: &mut Scenario, at: u64) -> Event {
    if !(4 * S..scenario.end() - 4 * S).contains(&at) {
        return some_jump(scenario);
    }
    let per_us = scenario.machine.cycles_per_s / 1_000_000;
    let most = [9_000, 200_000, 20_000_000_000][scenario.random.usize(0..3)] * per_us;
    Event::Migration {
        cycles: either_sign(&mut scenario.random, 20 * per_us, most),
        ppb: scenario.random.i64(-99_000..99_000),
    }
}

fn migration(scenario: &mut Scenario, base: i64) {
    waits(scenario, &[StampSource::Tsc]);
    for _ in 0..scenario.random.u8(1..4) {
        let at = scenario.moment();
        let event = some_migration(scenario, at);
        scenario.happens(at, event);
        // Whoever moves a machine sets its clock.
        if scenario.random.bool() {
            let (step, later) = (some_step(scenario), scenario.random.u64(0..20 * MS));
            scenario.happens(at + later, step);
        }
    }
    if scenario.random.bool() {
        servo(scenario, base, 8, 5_000);
    }
}

fn back(scenario: &mut Scenario) {
    waits(scenario, &SOURCES);
    for _ in 0..scenario.random.u8(1..6) {
        let at = scenario.moment();
        let Event::Step(ns) = some_step(scenario) else {
            continue;
        };
        let length = log_uniform(&mut scenario.random, US, 12 * MS);
        scenario.happens(at, Event::Step(ns));
        scenario.happens(at + length, Event::Step(-ns));
    }
}

fn tai_set(scenario: &mut Scenario) {
    waits(scenario, &[StampSource::Tai]);
    for _ in 0..scenario.random.u8(1..4) {
        let (at, seconds) = (scenario.moment(), scenario.random.i64(10..60));
        scenario.happens(at, Event::Tai(seconds));
    }
}
