//! What the programs counted.

use aya::maps::{Array, MapData, MapError, PerCpuHashMap, PerCpuValues};
use aya::util::nr_cpus;
use tscap_common::state::{CpuState, Losses, NO_RING, OTHER_INTERFACE};

use crate::capturing::accounting::{Outcome, Outcomes};
use crate::capturing::host::map_value::MapValue;

/// Only if the key is not there yet (include/uapi/linux/bpf.h).
const BPF_NOEXIST: u64 = 1;

/// A counter could not be read or set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} the XDP program's counters")]
pub struct CounterError {
    operation: &'static str,
    source: MapError,
}

/// The counters of all CPUs.
pub struct Counters {
    cpus: Array<MapData, MapValue<CpuState>>,
    losses: PerCpuHashMap<MapData, u32, MapValue<Losses>>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

impl Counters {
    pub(super) fn new(
        cpus: Array<MapData, MapValue<CpuState>>,
        losses: PerCpuHashMap<MapData, u32, MapValue<Losses>>,
    ) -> Self {
        Self { cpus, losses }
    }

    /// Gives the interface loss counters of its own; without them its losses
    /// count under [`OTHER_INTERFACE`]. Counters it has already are kept.
    pub fn announce(&mut self, ifindex: u32) -> Result<(), MapError> {
        let cpus = nr_cpus().map_err(|(_, error)| MapError::from(error));
        let zeros = PerCpuValues::try_from(vec![MapValue::default(); cpus?])?;
        match self.losses.insert(ifindex, zeros, BPF_NOEXIST) {
            Err(MapError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EEXIST) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    /// Frames that entered the programs, over all CPUs and interfaces.
    pub fn seen(&self) -> Result<u64, CounterError> {
        self.seen_off(&[])
    }

    /// Frames that entered the programs on other CPUs than these.
    pub fn seen_off(&self, cpus: &[u32]) -> Result<u64, CounterError> {
        // The index in the map is the number of the CPU.
        let states = (0u32..).zip(self.states()?);
        let others = states.filter(|(cpu, _)| !cpus.contains(cpu));
        Ok(others.map(|(_, state)| state.seen).sum())
    }

    fn states(&self) -> Result<Vec<CpuState>, CounterError> {
        let states = self.cpus.iter().map(|state| Ok(state.map_err(unread)?.0));
        states.collect()
    }

    /// Frames of one interface that were not recorded; none as long as it has
    /// no counters of its own.
    pub fn losses(&self, ifindex: u32) -> Result<Outcomes, CounterError> {
        let all = match self.losses.get(&ifindex, 0) {
            Err(MapError::KeyNotFound) => return Ok(Outcomes::default()),
            all => all.map_err(unread)?,
        };
        let mut sum = Outcomes::default();
        for MapValue(losses) in all.iter() {
            sum += Outcomes::from(*losses);
        }
        for state in self.states()?.iter().filter(|state| state.filtered > 0) {
            let is_of_it = match ifindex {
                OTHER_INTERFACE => !self.has(state.filtered_ifindex)?,
                ifindex => state.filtered_ifindex == ifindex,
            };
            if is_of_it {
                sum[Outcome::Filtered] += state.filtered;
            }
        }
        Ok(sum)
    }

    /// Whether an interface has counters of its own.
    fn has(&self, ifindex: u32) -> Result<bool, CounterError> {
        match self.losses.get(&ifindex, 0) {
            Err(MapError::KeyNotFound) => Ok(false),
            found => found.map_err(unread).map(|_| ifindex != OTHER_INTERFACE),
        }
    }

    /// Frames of interfaces without counters of their own.
    pub fn other_losses(&self) -> Result<Outcomes, CounterError> {
        self.losses(OTHER_INTERFACE)
    }
}

fn unread(source: MapError) -> CounterError {
    CounterError {
        operation: "read",
        source,
    }
}

/// The state that a CPU starts with.
pub(super) fn cpu_state(ring: Option<usize>) -> MapValue<CpuState> {
    let ring = ring.and_then(|ring| u32::try_from(ring).ok());
    MapValue(CpuState {
        ring: ring.unwrap_or(NO_RING),
        ..CpuState::default()
    })
}
