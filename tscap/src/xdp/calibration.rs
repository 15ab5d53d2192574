//! The offset of each CPU's event to the TSC.

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::{TestRun as _, TestRunOptions};
use tscap_common::config::TSC_BRACKETS_MAP;
use tscap_common::state::{TSC_BRACKETS, TscBracket};

use super::load::LoadError;
use super::retried::retried;
use super::tsc::{TscError, bracket_program};
use crate::clock::{Bounds, MonoNs, NsPerCycle, OffsetBracket, TscCycles};
use crate::sys::{affinity, tsc};

/// Runs of it that one calibration takes, 64 brackets each.
const RUNS: u32 = 20;
/// Calibrations that must fail before the counter is called unstable.
const ATTEMPTS: u32 = 3;
/// TSC readings around CLOCK_MONOTONIC before each run.
const USER_BRACKETS: u32 = 20;
/// Shortest frame that `BPF_PROG_TEST_RUN` takes.
const FRAME: [u8; 14] = [0; 14];

type BracketBytes = [u8; size_of::<TscBracket>() * TSC_BRACKETS];

/// What is known of the offset of a CPU's event to the TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscOffset {
    /// TSC less event count, cycles.
    pub cycles: Bounds,
    /// How wide that is, and why.
    pub bracket: OffsetBracket,
}

/// Finds the offset on `cpu` by going there and intersecting brackets. A chain of
/// two: CLOCK_MONOTONIC around the event, by the calibration program; the TSC
/// around CLOCK_MONOTONIC, from here.
pub(crate) fn calibrate(
    ebpf: &mut Ebpf,
    cpu: u32,
    rate: NsPerCycle,
) -> Result<TscOffset, TscError> {
    let back = affinity::allowed_cpus().map_err(|source| TscError::Pin { cpu, source })?;
    affinity::pin_to(cpu).map_err(|source| TscError::Pin { cpu, source })?;
    let mut offset = calibrate_here(ebpf, cpu, rate);
    for _ in 1..ATTEMPTS {
        // The event may have paused meanwhile, for one that somebody else opened.
        if matches!(offset, Err(TscError::Unstable { .. })) {
            offset = calibrate_here(ebpf, cpu, rate);
        }
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
    let mut cycles = EVERYTHING;
    let mut narrowest: Option<Run> = None;
    for _ in 0..RUNS {
        // Each run by itself: a few µs, over which the rate's error and a slew
        // of the clock come to nothing.
        let run = one_run(ebpf, cpu, rate)?;
        cycles = narrow(cycles, run.event_to_tsc(), cpu)?;
        let width = |run: &Run| run.event_to_tsc().width();
        if narrowest.as_ref().is_none_or(|it| width(&run) < width(it)) {
            narrowest = Some(run);
        }
    }
    let legs = narrowest.expect("there are several runs");
    Ok(TscOffset {
        cycles,
        bracket: OffsetBracket {
            cpu_ns: rate.duration_ns(legs.mono_count.width()),
            common_ns: rate.duration_ns(legs.tsc_mono.width()),
            whole_ns: rate.duration_ns(cycles.width()),
        },
    })
}

/// The two legs of the chain, cycles.
struct Run {
    /// TSC − rate · MONO since the origin.
    tsc_mono: Bounds,
    /// rate · MONO − count.
    mono_count: Bounds,
}

impl Run {
    fn event_to_tsc(&self) -> Bounds {
        Bounds {
            low: self.tsc_mono.low.saturating_add(self.mono_count.low),
            high: self.tsc_mono.high.saturating_add(self.mono_count.high),
        }
    }
}

fn one_run(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<Run, TscError> {
    let origin = Origin {
        mono_ns: MonoNs::now().0,
        tsc: tsc::read(),
        rate,
    };
    let (mut tsc_mono, mut mono_count) = (EVERYTHING, EVERYTHING);
    for _ in 0..USER_BRACKETS {
        tsc_mono = narrow(tsc_mono, user_bracket(&origin), cpu)?;
    }
    let program = bracket_program(ebpf)?;
    let run = retried(|| {
        program.test_run(TestRunOptions {
            data_in: Some(&FRAME),
            ..TestRunOptions::new()
        })
    });
    run.map_err(|source| TscError::Run { cpu, source })?;
    for bracket in brackets(ebpf)? {
        mono_count = narrow(mono_count, event_bracket(&origin, bracket), cpu)?;
    }
    Ok(Run {
        tsc_mono,
        mono_count,
    })
}

const EVERYTHING: Bounds = Bounds {
    low: i64::MIN / 4,
    high: i64::MAX / 4,
};

fn narrow(bounds: Bounds, with: Bounds, cpu: u32) -> Result<Bounds, TscError> {
    bounds.intersect(with).ok_or(TscError::Unstable { cpu })
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

fn brackets(ebpf: &Ebpf) -> Result<Vec<TscBracket>, TscError> {
    let map = ebpf.map(TSC_BRACKETS_MAP);
    let map = map.ok_or(LoadError::Missing("array map TSC_BRACKETS"))?;
    let map = Array::<&MapData, BracketBytes>::try_from(map)?;
    let bytes = map.get(&0, 0)?;
    let word = |bytes: &[u8], at: usize| {
        let word = bytes[at..].first_chunk();
        word.map_or(0, |word| u64::from_ne_bytes(*word))
    };
    Ok(bytes
        .chunks_exact(size_of::<TscBracket>())
        .map(|bytes| TscBracket {
            before: word(bytes, std::mem::offset_of!(TscBracket, before)),
            cycles: word(bytes, std::mem::offset_of!(TscBracket, cycles)),
            after: word(bytes, std::mem::offset_of!(TscBracket, after)),
        })
        .collect())
}
