//! Made-up characteristics for tests: a TSC of 2.5 GHz, the raw clock by both ways, ktime, and an
//! HPET that a load makes slower by 0.2 ppm.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::assemble::assemble;
use super::counter::{Counter, Facts};
use super::experiment::{Request, Results, Taken};
use super::phase::Stress;
use super::schema::{Captured, Characteristics, MissingCounter, Phase};
use tscap_base::recorded::Recorded;
use tscap_references::{CounterTrend, Sighting};
use tscap_results::fixtures::about;
use tscap_statistics::Distribution;
use tscap_time::TscCycles;

const TSC_HERTZ: f64 = 2.5e9;
/// Looks of a phase, every 100 ms.
const LOOKS: usize = 50;

/// Without a reference.
pub fn characteristics() -> Characteristics {
    let machine = Recorded::veth();
    let (results, request) = (results(), request());
    assemble(results, &request, about("counters"), &machine.files)
}

/// By `/dev/ptp0`, a device that its driver calls so.
pub fn by_ptp(name: &str) -> Characteristics {
    let machine = Recorded::veth();
    machine.put("sys/class/ptp/ptp0/clock_name", name);
    let device = PathBuf::from("/dev/ptp0");
    let mut results = results();
    let (taken, course) = (taken(Counter::Ptp, 5_000), course(1e9, 64, |_| 0.0));
    results.taken.push(taken);
    results.courses.insert(Counter::Ptp, course);
    results.ptp = Some(device.clone());
    let request = Request {
        reference: Some(device),
        ..request()
    };
    assemble(results, &request, about("counters"), &machine.files)
}

/// For CPU 1, two phases.
pub fn request() -> Request {
    Request {
        cpu: 1,
        phases: Stress::cycle(&[Stress::Cpu, Stress::Net]),
        phase: Duration::from_secs(5),
        reference: None,
        executable: PathBuf::from("tscap"),
    }
}

/// Results of a run with the phases of [`request`].
pub fn results() -> Results {
    let phases = request().phases;
    let looks = phases.iter().enumerate();
    let turns = looks.flat_map(|(index, _)| [index; LOOKS]).collect();
    let is_loaded = |turn: usize| phases[turn / LOOKS] == Stress::Cpu;
    let hpet = course(
        14_318_180.0,
        32,
        |turn| if is_loaded(turn) { -0.2 } else { 0.0 },
    );
    let raw = course(1e9, 64, |_| 0.0);
    let counters = [
        (Counter::Tsc, 2),
        (Counter::TscOrdered, 20),
        (Counter::RawVdso, 60),
        (Counter::RawSyscall, 600),
        (Counter::Ktime, 75),
        (Counter::Hpet, 1_900),
    ];
    Results {
        phases: phases.iter().map(|stress| phase(*stress)).collect(),
        taken: counters
            .map(|(counter, cycles)| taken(counter, cycles))
            .into(),
        courses: BTreeMap::from([(Counter::RawVdso, raw), (Counter::Hpet, hpet)]),
        turns,
        empty: request().phases.iter().map(|_| around(40)).collect(),
        empty_program: request().phases.iter().map(|_| around(60)).collect(),
        tsc_hertz: TSC_HERTZ,
        ptp: None,
        absent: vec![
            absent(Counter::Ptp, "there is no PTP hardware clock"),
            absent(Counter::AcpiPm, "the table FACP has 3 bytes only"),
            absent(Counter::AcpiPmSafe, "the table FACP has 3 bytes only"),
        ],
        ended_by: None,
        warnings: Vec::new(),
    }
}

fn phase(stress: Stress) -> Phase {
    Phase {
        stress,
        seconds: 5.0,
        busy: match stress {
            Stress::Cpu => vec![1.0, 0.97],
            _ => vec![0.02, 0.1],
        },
        captured: (stress == Stress::Net).then_some(Captured {
            sent: 4_000_000,
            seen: 4_000_000,
            written: 3_999_000,
        }),
    }
}

fn absent(counter: Counter, why: &str) -> MissingCounter {
    MissingCounter {
        counter,
        why: why.into(),
    }
}

fn taken(counter: Counter, cycles: i64) -> Taken {
    let facts = match counter {
        Counter::Tsc | Counter::TscOrdered => Facts::CYCLES,
        Counter::Hpet => Facts {
            hertz: Some(14_318_180.0),
            bits: 32,
        },
        _ => Facts::NANOSECONDS,
    };
    // With what the bracket takes.
    let empty = if counter == Counter::Ktime { 60 } else { 40 };
    let phases = request().phases.into_iter();
    let of_phases = phases.map(|_| around(empty + cycles)).collect();
    let turns = 0..LOOKS * request().phases.len();
    let mut taken = Taken::new(counter, facts, of_phases, 1);
    taken.medians = turns.map(|turn| (turn, empty + cycles)).collect();
    taken
}

/// A distribution about a median.
fn around(median: i64) -> Distribution {
    let mut distribution = Distribution::new();
    for value in 0..12_001 {
        distribution.add(median + (value - 6_000) / 600);
    }
    distribution.add(median + 90_000);
    distribution
}

/// A counter that goes by some ppm, of the turn, faster than its frequency.
fn course(hertz: f64, bits: u32, ppm: impl Fn(usize) -> f64) -> CounterTrend {
    let mut course = CounterTrend::new(bits, hertz, TSC_HERTZ);
    let mut ticks = 1e6;
    for turn in 0..LOOKS * request().phases.len() {
        let at = 7_000_000_000 + turn as u64 * 250_000_000;
        ticks += hertz / 10.0 * (1.0 + ppm(turn) * 1e-6);
        let tsc = [at - 100, at + 100].map(TscCycles);
        let value = ticks as u64 & (u64::MAX >> (64 - bits));
        course.take(turn, Sighting { tsc, value });
    }
    course
}
