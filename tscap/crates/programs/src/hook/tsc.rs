//! The perf events of the TSC path.

use std::io;
use std::os::fd::AsFd as _;

use aya::Ebpf;
use aya::maps::{Map, MapError};
use aya::programs::{ProgramError, Xdp};
use tscap_common::config::TSC_EVENTS;

use super::load_error::{LoadError, load_program};
use tscap_clock::{Bounds, OffsetBracket};
use tscap_host::perf::{EventPriority, PerfError, TscEvent};
use tscap_network::bpf::put_fd;

/// Name of the program that [`super::calibration`] runs.
pub(super) const BRACKET_PROGRAM: &str = "tscap_tsc_bracket";

/// What is known of the offset of a CPU's event to the TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscOffset {
    /// TSC less event count, cycles.
    pub cycles: Bounds,
    /// How wide that is, and why.
    pub bracket: OffsetBracket,
}

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
    /// The event counts no more, as when its CPU was offline meanwhile.
    #[error("the TSC event of CPU {cpu} can't be read any more, as when the CPU was offline")]
    Dead {
        /// The CPU.
        cpu: u32,
        /// Why.
        source: io::Error,
    },
    /// The brackets contradict each other.
    #[error(
        "the TSC event of CPU {cpu} has no constant offset to the TSC: the counter is unstable"
    )]
    Unstable {
        /// The CPU.
        cpu: u32,
        /// All that was seen.
        seen: TscOffset,
    },
}

impl TscError {
    /// The same, with what was seen before it.
    pub(super) fn with(self, before: TscOffset) -> Self {
        match self {
            Self::Unstable { cpu, seen } => Self::Unstable {
                cpu,
                seen: TscOffset {
                    cycles: seen.cycles.hull(before.cycles),
                    ..seen
                },
            },
            other => other,
        }
    }
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
    pub fn open(ebpf: &mut Ebpf, cpus: &[u32], priority: EventPriority) -> Result<Self, TscError> {
        let Some(Map::PerfEventArray(map)) = ebpf.map(TSC_EVENTS) else {
            return Err(LoadError::Missing("perf event array TSC_EVENTS").into());
        };
        let mut events = Vec::new();
        for cpu in cpus.iter().copied() {
            let event = TscEvent::open(cpu, priority)?;
            put_fd(map.fd().as_fd(), cpu, event.as_fd())
                .map_err(|source| TscError::Put { cpu, source })?;
            events.push(event);
        }
        load_program(bracket_program(ebpf)?, BRACKET_PROGRAM)?;
        Ok(Self { _events: events })
    }
}

pub(super) fn bracket_program(ebpf: &mut Ebpf) -> Result<&mut Xdp, LoadError> {
    ebpf.program_mut(BRACKET_PROGRAM)
        .and_then(|program| program.try_into().ok())
        .ok_or(LoadError::Missing("calibration program"))
}
