//! The perf events of the TSC path, and the offset of each to the TSC.

use std::io;
use std::os::fd::AsFd as _;

use aya::Ebpf;
use aya::maps::{Array, Map, MapData, MapError};
use aya::programs::{ProgramError, TestRun as _, TestRunOptions, Xdp};
use tscap_common::config::{TSC_BRACKETS_MAP, TSC_EVENTS};
use tscap_common::state::{TSC_BRACKETS, TscBracket};

use super::load::LoadError;
use crate::clock::{Bounds, MonoNs, NsPerCycle, TscCycles};
use crate::sys::bpf::put_fd;
use crate::sys::perf::{PerfError, TscEvent};
use crate::sys::{affinity, tsc};

/// Name of the calibration program.
const BRACKET_PROGRAM: &str = "tscap_tsc_bracket";
/// Runs of it that one calibration takes, 64 brackets each.
const RUNS: u32 = 20;
/// TSC readings around CLOCK_MONOTONIC before each run.
const USER_BRACKETS: u32 = 20;
/// Shortest frame that `BPF_PROG_TEST_RUN` takes.
const FRAME: [u8; 14] = [0; 14];

type BracketBytes = [u8; size_of::<TscBracket>() * TSC_BRACKETS];

/// Why there is no TSC for XDP here.
#[derive(Debug, thiserror::Error)]
pub enum TscError {
    /// No perf event.
    #[error(transparent)]
    Perf(#[from] PerfError),
    /// The object or a map is not as expected.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A perf event could not be given to the program.
    #[error("cannot put the perf event of CPU {cpu} into the eBPF map")]
    Put {
        /// The CPU.
        cpu: u32,
        /// Why.
        source: io::Error,
    },
    /// The calibration could not be run.
    #[error("cannot run the calibration program on CPU {cpu}")]
    Run {
        /// The CPU.
        cpu: u32,
        /// Why.
        source: ProgramError,
    },
    /// This thread could not go to the CPU.
    #[error("cannot go to CPU {cpu} to calibrate it")]
    Pin {
        /// The CPU.
        cpu: u32,
        /// Why.
        source: io::Error,
    },
    /// The brackets could not be read.
    #[error("cannot read the calibration's brackets")]
    Read(#[from] MapError),
    /// The brackets contradict each other.
    #[error(
        "the TSC event of CPU {cpu} has no constant offset to the TSC: the counter is unstable"
    )]
    Unstable {
        /// The CPU.
        cpu: u32,
    },
}

/// One event on each CPU that has a ring, in the program's map.
#[derive(Debug)]
pub struct TscEvents {
    /// Held open: closing an event takes it out of use.
    _events: Vec<TscEvent>,
}

impl TscEvents {
    /// Opens an event on each CPU, gives it to the program, and loads the
    /// calibration program.
    pub(super) fn open(ebpf: &mut Ebpf, cpus: &[u32]) -> Result<Self, TscError> {
        let Some(Map::PerfEventArray(map)) = ebpf.map(TSC_EVENTS) else {
            return Err(LoadError::Missing("perf event array TSC_EVENTS").into());
        };
        let mut events = Vec::new();
        for cpu in cpus.iter().copied() {
            let event = TscEvent::open(cpu)?;
            put_fd(map.fd().as_fd(), cpu, event.as_fd())
                .map_err(|source| TscError::Put { cpu, source })?;
            events.push(event);
        }
        let program = bracket_program(ebpf)?;
        program.load().map_err(|source| LoadError::Program {
            program: BRACKET_PROGRAM.into(),
            source,
        })?;
        Ok(Self { _events: events })
    }
}

fn bracket_program(ebpf: &mut Ebpf) -> Result<&mut Xdp, LoadError> {
    ebpf.program_mut(BRACKET_PROGRAM)
        .and_then(|program| program.try_into().ok())
        .ok_or(LoadError::Missing("calibration program"))
}

/// TSC less event count on `cpu`, cycles: found by going there and intersecting
/// brackets. A chain of two: CLOCK_MONOTONIC around the event, by the
/// calibration program; the TSC around CLOCK_MONOTONIC, from here.
pub(super) fn calibrate(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<Bounds, TscError> {
    let back = affinity::allowed_cpus().map_err(|source| TscError::Pin { cpu, source })?;
    affinity::pin_to(cpu).map_err(|source| TscError::Pin { cpu, source })?;
    let offset = calibrate_here(ebpf, cpu, rate);
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

fn calibrate_here(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<Bounds, TscError> {
    let mut offset = EVERYTHING;
    for _ in 0..RUNS {
        // Each run by itself: a few µs, over which the rate's error and a slew
        // of the clock come to nothing.
        let run = one_run(ebpf, cpu, rate)?;
        offset = offset.intersect(run).ok_or(TscError::Unstable { cpu })?;
    }
    Ok(offset)
}

fn one_run(ebpf: &mut Ebpf, cpu: u32, rate: NsPerCycle) -> Result<Bounds, TscError> {
    let origin = Origin {
        mono_ns: MonoNs::now().0,
        tsc: tsc::read(),
        rate,
    };
    // TSC − rate · MONO since the origin, and rate · MONO − count.
    let (mut tsc_mono, mut mono_count) = (EVERYTHING, EVERYTHING);
    for _ in 0..USER_BRACKETS {
        tsc_mono = narrow(tsc_mono, user_bracket(&origin), cpu)?;
    }
    let options = TestRunOptions {
        data_in: Some(&FRAME),
        ..TestRunOptions::new()
    };
    bracket_program(ebpf)?
        .test_run(options)
        .map_err(|source| TscError::Run { cpu, source })?;
    for bracket in brackets(ebpf)? {
        mono_count = narrow(mono_count, event_bracket(&origin, bracket), cpu)?;
    }
    Ok(Bounds {
        low: tsc_mono.low.saturating_add(mono_count.low),
        high: tsc_mono.high.saturating_add(mono_count.high),
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
