//! The offset of each CPU's event to the TSC.

use std::io;

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::{TestRun as _, TestRunOptions};
use tscap_common::config::TSC_BRACKETS_MAP;
use tscap_common::state::{TSC_BRACKETS, TscBracket};

use super::load_error::LoadError;
use super::retry::retry_interrupted;
use super::tsc::{TscError, TscOffset, bracket_program};
use tscap_clock::{Bounds, MonoNs, NsPerCycle, OffsetBracket, TscCycles};
use tscap_host::affinity;
use tscap_network::map_value::MapValue;
use tscap_time::tsc;

/// Runs of it that one calibration takes, 64 brackets each.
const RUNS: u32 = 20;
/// Calibrations that must fail before the counter is called unstable.
const ATTEMPTS: u32 = 3;
/// TSC readings around CLOCK_MONOTONIC before each run.
const USER_BRACKETS: u32 = 20;
/// Shortest frame that `BPF_PROG_TEST_RUN` takes.
const FRAME: [u8; 14] = [0; 14];

/// Finds the offset on `cpu` by going there and intersecting brackets. A chain of
/// two: CLOCK_MONOTONIC around the event, by the calibration program; the TSC
/// around CLOCK_MONOTONIC, from here.
pub fn calibrate(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<TscOffset, TscError> {
    let back = affinity::allowed_cpus().map_err(|source| TscError::Pin { cpu, source })?;
    affinity::pin_to(cpu).map_err(|source| TscError::Pin { cpu, source })?;
    let mut offset = calibrate_here(ebpf, cpu, rate);
    for _ in 1..ATTEMPTS {
        // The event may have paused meanwhile, for one that somebody else opened.
        let Err(TscError::Unstable { seen: before, .. }) = offset else {
            break;
        };
        offset = calibrate_here(ebpf, cpu, rate).map_err(|error| error.with(before));
    }
    affinity::allow(&back).map_err(|source| TscError::Pin { cpu, source })?;
    offset
}

/// Times are taken from an origin, so that spans are short and exact.
#[derive(Clone, Copy)]
struct Origin {
    mono_ns: u64,
    tsc: TscCycles,
    rate: NsPerCycle,
}

impl Origin {
    /// Cycles from the origin to a CLOCK_MONOTONIC reading, as the rate has it.
    fn cycles_to(&self, mono_ns: u64) -> i64 {
        let span = mono_ns.wrapping_sub(self.mono_ns).cast_signed();
        self.rate.cycles_in(span)
    }
}

fn calibrate_here(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<TscOffset, TscError> {
    // Each run by itself: a few µs, over which the rate's error and a slew
    // of the clock come to nothing.
    let runs = (0..RUNS).map(|_| one_run(ebpf, cpu, rate));
    let runs = runs.collect::<Result<Vec<Run>, _>>()?;
    let narrowest = runs.iter().min_by_key(|run| run.event_to_tsc().width());
    let legs = narrowest.expect("there are several runs");
    let cycles = common(runs.iter().map(Run::event_to_tsc));
    let offset = |cycles: Bounds| TscOffset {
        cycles,
        bracket: OffsetBracket {
            cpu_ns: rate.duration_ns(legs.mono_count.width()),
            common_ns: rate.duration_ns(legs.tsc_mono.width()),
            whole_ns: rate.duration_ns(cycles.width()),
        },
    };
    match cycles {
        Ok(cycles) if runs.iter().all(|run| run.is_constant) => Ok(offset(cycles)),
        _ => Err(TscError::Unstable {
            cpu,
            seen: offset(hull(runs.iter().map(Run::event_to_tsc))),
        }),
    }
}

/// The two legs of the chain, cycles.
struct Run {
    /// TSC − rate · MONO since the origin.
    tsc_mono: Bounds,
    /// rate · MONO − count.
    mono_count: Bounds,
    /// Whether no two of its brackets contradict each other.
    is_constant: bool,
}

impl Run {
    fn event_to_tsc(&self) -> Bounds {
        Bounds {
            low: self.tsc_mono.low + self.mono_count.low,
            high: self.tsc_mono.high + self.mono_count.high,
        }
    }
}

fn one_run(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<Run, TscError> {
    let origin = Origin {
        mono_ns: MonoNs::now().0,
        tsc: tsc::read(),
        rate,
    };
    let user: Vec<Bounds> = (0..USER_BRACKETS).map(|_| user_bracket(&origin)).collect();
    let program = bracket_program(ebpf)?;
    let run = retry_interrupted(|| {
        program.test_run(TestRunOptions {
            data_in: Some(&FRAME),
            ..TestRunOptions::new()
        })
    });
    run.map_err(|source| TscError::Run { cpu, source })?;
    let events = brackets(ebpf)?;
    if let Some(errno) = events.iter().find_map(errno) {
        let source = io::Error::from_raw_os_error(errno);
        return Err(TscError::Dead { cpu, source });
    }
    let tsc_mono = common(user.into_iter());
    let mono_count = common(
        events
            .iter()
            .map(|bracket| event_bracket(&origin, *bracket)),
    );
    Ok(Run {
        is_constant: tsc_mono.is_ok() && mono_count.is_ok(),
        tsc_mono: tsc_mono.unwrap_or_else(|hull| hull),
        mono_count: mono_count.unwrap_or_else(|hull| hull),
    })
}

/// What all brackets of one offset allow; if two contradict each other, all that any
/// of them does.
fn common(brackets: impl Iterator<Item = Bounds> + Clone) -> Result<Bounds, Bounds> {
    let mut all = brackets.clone();
    let first = all.next().expect("there are several brackets");
    let narrowed = all.try_fold(first, Bounds::intersect);
    narrowed.ok_or_else(|| hull(brackets))
}

fn hull(brackets: impl Iterator<Item = Bounds>) -> Bounds {
    brackets
        .reduce(Bounds::hull)
        .expect("there are several brackets")
}

/// What `bpf_perf_event_read` says instead of a count: -4095..-1, as system calls do.
fn errno(bracket: &TscBracket) -> Option<i32> {
    let cycles = bracket.cycles.cast_signed();
    let errno = i32::try_from(cycles.checked_neg()?).ok()?;
    (1..=4095).contains(&errno).then_some(errno)
}

/// One reading of CLOCK_MONOTONIC between two of the TSC. Readings are
/// truncated to nanoseconds, so the instant lies up to 1 ns later.
fn user_bracket(origin: &Origin) -> Bounds {
    let before = tsc::read();
    let mono = MonoNs::now().0;
    let after = tsc::read();
    let since = |tsc: TscCycles| tsc.0.wrapping_sub(origin.tsc.0).cast_signed();
    Bounds {
        low: since(before) - origin.cycles_to(mono + 1) - 1,
        high: since(after) - origin.cycles_to(mono) + 1,
    }
}

/// One reading of the event between two of CLOCK_MONOTONIC, with the TSC's
/// origin added.
fn event_bracket(origin: &Origin, bracket: TscBracket) -> Bounds {
    let base = origin.tsc.0.wrapping_sub(bracket.cycles).cast_signed();
    Bounds {
        low: base + origin.cycles_to(bracket.before) - 1,
        high: base + origin.cycles_to(bracket.after + 1) + 1,
    }
}

pub(super) fn brackets(ebpf: &Ebpf) -> Result<[TscBracket; TSC_BRACKETS], TscError> {
    let map = ebpf.map(TSC_BRACKETS_MAP);
    let map = map.ok_or(LoadError::Missing("array map TSC_BRACKETS"))?;
    let map = Array::<&MapData, [MapValue<TscBracket>; TSC_BRACKETS]>::try_from(map)?;
    Ok(map.get(&0, 0)?.map(|MapValue(bracket)| bracket))
}
