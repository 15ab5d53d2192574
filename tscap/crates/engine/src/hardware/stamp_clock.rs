//! The clock of an interface's hardware stamps, as one converter knows it.

use std::sync::Arc;

use super::PtpClock;
use tscap_clock::{MonoNs, PhcNs};
use tscap_references::{NicClock, NicConversion};

/// What one converter knows of a PTP clock.
#[derive(Debug)]
pub struct StampClock {
    ptp: Arc<PtpClock>,
    /// Readings that were taken from there.
    taken: u64,
    clock: NicClock,
    conversion: Option<NicConversion>,
}

impl StampClock {
    /// Knows nothing yet of `ptp`.
    pub fn of(ptp: &Arc<PtpClock>) -> Self {
        Self {
            ptp: Arc::clone(ptp),
            taken: 0,
            clock: NicClock::default(),
            conversion: None,
        }
    }

    /// Whether it is that of `ptp`.
    pub(super) fn is_of(&self, ptp: &Arc<PtpClock>) -> bool {
        Arc::ptr_eq(&self.ptp, ptp)
    }

    /// Takes in what was read since the call before. Says whether times since the reading
    /// before have no bound, or `None` if there is nothing new.
    pub fn update(&mut self) -> Option<bool> {
        let readings = self.ptp.since(&mut self.taken);
        let unknown = readings.iter().map(|reading| self.clock.observe(reading));
        let unknown = unknown.reduce(|one, other| one | other)?;
        self.conversion = self.clock.conversion();
        Some(unknown)
    }

    /// CLOCK_MONOTONIC at the hardware stamp of a frame that was `received` by its program
    /// then; `None` if the clock is not known well enough at that time.
    #[inline]
    pub fn to_mono(&self, stamp: PhcNs, received: MonoNs) -> Option<MonoNs> {
        self.conversion.as_ref()?.to_mono(stamp, received)
    }

    /// Greatest error so far of the times that it gave, ns; `None` before it gives any.
    pub fn bound_ns(&self) -> Option<u64> {
        self.clock.bound_ns()
    }
}
