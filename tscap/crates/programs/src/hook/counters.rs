//! What the programs counted.

use aya::maps::{Array, MapData, MapError, PerCpuArray};
use tscap_common::hook::Slot;
use tscap_common::state::{CpuState, Losses, NO_RING};

use super::Shares;
use tscap_file::accounting::{Directed, Outcome, Outcomes};
use tscap_network::map_value::MapValue;

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
        Ok(self.seen_by(&Shares::all())?.remove(0))
    }

    /// Those that came in on other CPUs than `cpus`.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn seen_outside(&self, cpus: &[u32]) -> Result<Directed<u64>, CounterError> {
        let mut sum = Directed::default();
        for (cpu, seen) in self.seen_on()? {
            if !cpus.contains(&cpu) {
                sum += seen;
            }
        }
        Ok(sum)
    }

    /// Frames that entered the programs, by writer.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn seen_by(&self, shares: &Shares) -> Result<Vec<Directed<u64>>, CounterError> {
        let mut sums = vec![Directed::default(); shares.count()];
        for (cpu, seen) in self.seen_on()? {
            sums[shares.of(cpu)] += seen;
        }
        Ok(sums)
    }

    /// By the number of the CPU, which is the index in the map.
    fn seen_on(&self) -> Result<impl Iterator<Item = (u32, Directed<u64>)>, CounterError> {
        let seen = |state: CpuState| Directed::by(|direction| state.seen[direction as usize]);
        Ok((0..).zip(self.states()?.into_iter().map(seen)))
    }

    fn states(&self) -> Result<Vec<CpuState>, CounterError> {
        let states = self.cpus.iter().map(|state| Ok(state?.0));
        states.collect()
    }

    /// Frames of each slot that its program did not record, by reason: by writer, then by slot.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub fn losses(
        &self,
        slots: &[Slot],
        shares: &Shares,
    ) -> Result<Vec<Vec<Outcomes>>, CounterError> {
        let mut sums = vec![vec![Outcomes::default(); slots.len()]; shares.count()];
        for (index, slot) in slots.iter().enumerate() {
            let of_cpus = self.losses.get(&slot.0, 0)?;
            for (cpu, MapValue(losses)) in (0..).zip(of_cpus.iter()) {
                sums[shares.of(cpu)][index] += Outcomes::from(*losses);
            }
        }
        for (cpu, state) in (0..).zip(self.states()?) {
            let of = slots.iter().position(|slot| slot.0 == state.filtered_slot);
            if let Some(of) = of {
                sums[shares.of(cpu)][of][Outcome::Filtered] += state.filtered;
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
