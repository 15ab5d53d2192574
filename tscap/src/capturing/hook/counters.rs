//! What the programs counted.

use std::mem::offset_of;

use aya::maps::{Array, MapData, MapError, PerCpuHashMap, PerCpuValues};
use aya::util::nr_cpus;
use tscap_common::state::{CpuState, Losses, NO_RING, OTHER_INTERFACE};

use crate::capturing::accounting::Outcomes;
use crate::capturing::host::map_value::MapValue;

/// A [`CpuState`] as it lies in the map: bytes, because it ends in padding.
pub(super) type CpuBytes = [u8; size_of::<CpuState>()];

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
    cpus: Array<MapData, CpuBytes>,
    losses: PerCpuHashMap<MapData, u32, MapValue<Losses>>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

impl Counters {
    pub(super) fn new(
        cpus: Array<MapData, CpuBytes>,
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
        let mut seen = 0;
        // The index in the map is the number of the CPU.
        for (cpu, state) in (0u32..).zip(self.cpus.iter()) {
            let state = state.map_err(|source| CounterError {
                operation: "read",
                source,
            })?;
            if !cpus.contains(&cpu) {
                seen += decode_seen(&state);
            }
        }
        Ok(seen)
    }

    /// Frames of one interface that were not recorded; none as long as it has
    /// no counters of its own.
    pub fn losses(&self, ifindex: u32) -> Result<Outcomes, CounterError> {
        let all = match self.losses.get(&ifindex, 0) {
            Err(MapError::KeyNotFound) => return Ok(Outcomes::default()),
            all => all.map_err(|source| CounterError {
                operation: "read",
                source,
            })?,
        };
        let mut sum = Outcomes::default();
        for MapValue(losses) in all.iter() {
            sum += Outcomes::from(*losses);
        }
        Ok(sum)
    }

    /// Frames of interfaces without counters of their own.
    pub fn other_losses(&self) -> Result<Outcomes, CounterError> {
        self.losses(OTHER_INTERFACE)
    }
}

/// The state that a CPU starts with.
pub(super) fn cpu_state(ring: Option<usize>) -> CpuBytes {
    let ring = ring.and_then(|ring| u32::try_from(ring).ok());
    let mut bytes = [0; size_of::<CpuState>()];
    let at = offset_of!(CpuState, ring);
    bytes[at..at + 4].copy_from_slice(&ring.unwrap_or(NO_RING).to_ne_bytes());
    bytes
}

fn decode_seen(state: &CpuBytes) -> u64 {
    let seen = state[offset_of!(CpuState, seen)..].first_chunk();
    u64::from_ne_bytes(*seen.expect("the state holds the field"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_fields_agree() {
        let mut state = cpu_state(None);
        state[24..32].copy_from_slice(&7u64.to_ne_bytes());
        assert_eq!(decode_seen(&state), 7);
        assert_eq!(cpu_state(Some(3))[..4], 3u32.to_ne_bytes());
        assert_eq!(cpu_state(None)[..4], NO_RING.to_ne_bytes());
    }
}
