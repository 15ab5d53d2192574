//! What the programs counted.

use aya::maps::{Array, MapData, MapError, PerCpuArray};
use tscap_common::hook::Slot;
use tscap_common::state::{CpuState, Losses, NO_RING};

use crate::capturing::accounting::{Directed, Outcome, Outcomes};
use crate::capturing::host::map_value::MapValue;

/// The counters are out of reach.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the programs' counters")]
pub struct CounterError(#[from] MapError);

/// The counters, read only.
pub struct Counters {
    cpus: Array<MapData, MapValue<CpuState>>,
    losses: PerCpuArray<MapData, MapValue<Losses>>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

impl Counters {
    pub(super) fn new(
        cpus: Array<MapData, MapValue<CpuState>>,
        losses: PerCpuArray<MapData, MapValue<Losses>>,
    ) -> Self {
        Self { cpus, losses }
    }

    /// Frames that entered the programs.
    ///
    /// # Errors
    /// If the kernel does not give the counters.
    pub fn seen(&self) -> Result<Directed<u64>, CounterError> {
        self.seen_off(&[])
    }

    /// Those that came in on other CPUs than `cpus`.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn seen_off(&self, cpus: &[u32]) -> Result<Directed<u64>, CounterError> {
        // The index in the map is the number of the CPU.
        let states = (0u32..).zip(self.states()?);
        let others: Vec<_> = states.filter(|(cpu, _)| !cpus.contains(cpu)).collect();
        let seen = |direction| {
            others
                .iter()
                .map(|(_, it)| it.seen[direction as usize])
                .sum()
        };
        Ok(Directed::by(seen))
    }

    fn states(&self) -> Result<Vec<CpuState>, CounterError> {
        let states = self.cpus.iter().map(|state| Ok(state?.0));
        states.collect()
    }

    /// Frames of each slot that its program did not record, by reason.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn losses(&self, slots: &[Slot]) -> Result<Vec<Outcomes>, CounterError> {
        let mut sums = Vec::with_capacity(slots.len());
        for slot in slots {
            let mut sum = Outcomes::default();
            for MapValue(losses) in self.losses.get(&slot.0, 0)?.iter() {
                sum += Outcomes::from(*losses);
            }
            sums.push(sum);
        }
        for state in self.states()? {
            let of = slots.iter().position(|slot| slot.0 == state.filtered_slot);
            if let Some(of) = of {
                sums[of][Outcome::Filtered] += state.filtered;
            }
        }
        Ok(sums)
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
