//! From the stamps of an interface's own clock to CLOCK_MONOTONIC.
//!
//! A PTP hardware clock is a counter as the TSC is one: its stamps are converted by the same
//! [`CounterClock`], whose reference is CLOCK_MONOTONIC here, which nobody steps. A reading is
//! the device between two values of that clock, so that the device's value in the middle of
//! them is known to half of their distance.

use tscap_clock::counter::CounterOutcome;
use tscap_clock::cross::exact_offset;
use tscap_clock::{
    Bracket, CounterClock, CounterConversion, MonoNs, OffsetNs, PhcNs, PhcReading, RealNs,
    Reference, Scale, TscCycles,
};
use tscap_time::ptp::PtpError;

/// The device between two values of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicReading {
    /// CLOCK_MONOTONIC before and after the device was read.
    pub mono: [MonoNs; 2],
    /// The device's time.
    pub phc: PhcNs,
}

/// If they have given none, the first of them is forgotten after this time.
const LONGEST_BASELINE_NS: u64 = 2_000_000_000;
/// The first rate is good to this at least, and as near to that of CLOCK_MONOTONIC: 0.1 %,
/// more than any oscillator is off.
const FARTHEST_RATE_PPB: u64 = 1_000_000;
/// Stamps are converted for so long after the latest reading of use.
const LONGEST_AGE_NS: u64 = 200_000_000;
/// A frame that is received so long after a reading was stamped by its interface after it.
const LONGEST_WAY_NS: u64 = 10_000_000;

impl NicReading {
    /// Reads the device.
    ///
    /// # Errors
    /// If its driver refuses.
    pub fn take(
        device: &mut impl Reference<Result<PhcReading, PtpError>>,
    ) -> Result<Self, PtpError> {
        let (mono_before, offset_before) = (MonoNs::now(), exact_offset());
        let reading = device.read()?;
        let (offset_after, mono_after) = (exact_offset(), MonoNs::now());
        let offset = offset_before.filter(|_| offset_before == offset_after);
        Ok(Self::within([mono_before, mono_after], &reading, offset))
    }

    /// The kernel has read CLOCK_REALTIME right before and after the device, which is
    /// CLOCK_MONOTONIC and an offset (`CrossTimestamp::mono_to_real`), if that was the same
    /// before and after; else all of the way counts.
    fn within(whole: [MonoNs; 2], reading: &PhcReading, offset: Option<OffsetNs>) -> Self {
        let mono = |real: RealNs, OffsetNs(ns)| MonoNs(real.0.wrapping_sub_signed(ns));
        let inner = offset.map(|offset| {
            let [first, last] = reading.real.map(|real| mono(real, offset));
            // Readings are truncated to nanoseconds.
            [first.max(whole[0]), MonoNs(last.0 + 1).min(whole[1])]
        });
        let inner = inner.filter(|[first, last]| first <= last);
        Self {
            mono: inner.unwrap_or(whole),
            phc: reading.phc,
        }
    }

    /// CLOCK_MONOTONIC in the middle, between two values of the device, rounded outwards, as
    /// its time is truncated to nanoseconds; a device that is 0.1 % off is one nanosecond off
    /// after a microsecond.
    fn bracket(&self) -> Bracket {
        let [first, last] = self.mono.map(|mono| mono.0);
        let half = last.saturating_sub(first).div_ceil(2);
        let half = half + half.div_ceil(1_000) + 1;
        Bracket {
            tsc: [
                TscCycles(self.phc.0.saturating_sub(half)),
                TscCycles(self.phc.0.saturating_add(half)),
            ],
            real: [RealNs(first + last.saturating_sub(first) / 2); 2],
        }
    }
}

/// The clock of an interface's stamps.
#[derive(Clone, Debug, Default)]
pub struct NicClock {
    first: Option<Bracket>,
    clock: Option<CounterClock>,
    /// When it was read last with use.
    latest: Option<MonoNs>,
    /// Frames that were received then have no time by it: nobody knows how it went.
    unknown: Option<[MonoNs; 2]>,
}

/// Turns stamps into CLOCK_MONOTONIC until the next reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConversion {
    clock: CounterConversion,
    until: MonoNs,
    unknown: Option<[MonoNs; 2]>,
}

impl NicClock {
    /// Two readings this far apart give the first rate: of 2 µs they give it to 20 ppm.
    pub const SHORTEST_BASELINE_NS: u64 = 200_000_000;

    /// Takes in one more reading. Says whether the times since the reading of use before have
    /// no bound: the device was set, or may have bent more than once.
    pub fn observe(&mut self, reading: &NicReading) -> bool {
        let bracket = reading.bracket();
        let at = reading.mono[1];
        let Some(clock) = &mut self.clock else {
            self.begin(bracket, at);
            return false;
        };
        let unknown = match clock.observe(&bracket) {
            CounterOutcome::PassedOver => {
                // Nothing else proves that the device was not set by less than that shows.
                clock.widen_for_unseen_steps();
                return false;
            }
            CounterOutcome::Used { unknown } => unknown.is_some(),
            CounterOutcome::Jumped { .. } => true,
        };
        let before = self.latest.replace(at);
        if unknown {
            let until = MonoNs(at.0 + LONGEST_WAY_NS);
            self.unknown = Some([before.unwrap_or(MonoNs(0)), until]);
        }
        unknown
    }

    fn begin(&mut self, bracket: Bracket, at: MonoNs) {
        let first = self.first.get_or_insert(bracket);
        let span = bracket.real[0].0.saturating_sub(first.real[0].0);
        if span < Self::SHORTEST_BASELINE_NS {
            return;
        }
        let clock = CounterClock::of(Scale::NIC, first, &bracket, FARTHEST_RATE_PPB);
        let is_near = |clock: &CounterClock| {
            let off_ppb = clock.rate().ppb_from(tscap_clock::NsPerCycle::ONE);
            off_ppb.unsigned_abs() <= FARTHEST_RATE_PPB
        };
        self.clock = clock.filter(is_near);
        match self.clock {
            Some(_) => self.latest = Some(at),
            None if span > LONGEST_BASELINE_NS => self.first = Some(bracket),
            None => {}
        }
    }

    /// The conversion in force; `None` before there are two readings far enough apart.
    pub fn conversion(&self) -> Option<NicConversion> {
        Some(NicConversion {
            clock: self.clock.as_ref()?.conversion(),
            until: MonoNs(self.latest?.0 + LONGEST_AGE_NS),
            unknown: self.unknown,
        })
    }

    /// Greatest error so far of the times that it gave, ns, as that of
    /// [`CounterClock::bound_ns`], and 2 ns because stamps are truncated and times rounded;
    /// `None` before it gives any.
    pub fn bound_ns(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.bound_ns() + 2)
    }
}

impl NicConversion {
    /// CLOCK_MONOTONIC at the hardware stamp of a frame that was `received` by its program
    /// then; `None` if the clock is not known well enough at that time.
    #[inline]
    pub fn to_mono(&self, stamp: PhcNs, received: MonoNs) -> Option<MonoNs> {
        let is_unknown = |[from, until]: [MonoNs; 2]| received > from && received < until;
        if received > self.until || self.unknown.is_some_and(is_unknown) {
            return None;
        }
        Some(MonoNs(self.clock.to_real(TscCycles(stamp.0)).0))
    }
}

#[cfg(test)]
mod tests;
