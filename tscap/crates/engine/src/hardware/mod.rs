//! Hardware stamps of frames: how much earlier than its own stamp each frame was stamped by
//! the clock of its interface.

mod delays;
mod ptp_clock;
mod stamp_clock;

use std::sync::Arc;

use tscap_common::block::NOT_CONVERTED;
use tscap_common::hook::Slot;

pub use self::delays::{DelaySummary, Delays};
pub use self::ptp_clock::PtpClock;
pub use self::stamp_clock::StampClock;
use super::Shared;
use tscap_clock::{Conversion, MonoNs, OffsetNs, RawStamp, StampSource, Tracker};
use tscap_file::accounting::{Directed, Direction, HardwareFrames, Written};
use tscap_programs::ring::Block;

/// The clocks of the interfaces, and what came of the stamps.
#[derive(Debug)]
pub(super) struct HardwareStamps {
    /// In the file's order.
    interfaces: Vec<Interface>,
    clocks: Vec<StampClock>,
    received: ReceiveClock,
    /// Greatest error of the frames' own stamps, ns.
    host_bound_ns: u64,
}

#[derive(Debug, Default)]
struct Interface {
    /// Index of its clock, if it has one.
    clock: Option<usize>,
    delays: Delays,
    /// Frames that were converted since the latest reading of the clock.
    since_reading: u64,
}

/// What makes CLOCK_MONOTONIC of the frames' own stamps, for one drain.
#[derive(Clone, Copy, Debug)]
struct ReceiveClock {
    source: StampSource,
    /// REALTIME − MONOTONIC since the latest step.
    offset: OffsetNs,
}

impl ReceiveClock {
    fn of(tracker: &Tracker) -> Self {
        Self {
            source: tracker.source(),
            offset: tracker.current().mono_to_real.middle(),
        }
    }

    /// `None` of a stamp before the latest step, whose offset was another one.
    #[inline]
    fn mono(self, stamp: RawStamp, conversion: &Conversion) -> Option<MonoNs> {
        if self.source == StampSource::Ktime {
            return Some(MonoNs(stamp.0));
        }
        let real = conversion.to_real(stamp);
        let mono = MonoNs(real.0.wrapping_sub_signed(self.offset.0));
        conversion.is_since_step(stamp).then_some(mono)
    }
}

impl HardwareStamps {
    pub fn new(tracker: &Tracker) -> Self {
        Self {
            interfaces: Vec::new(),
            clocks: Vec::new(),
            received: ReceiveClock::of(tracker),
            host_bound_ns: 0,
        }
    }

    /// Before a drain: takes in what has been read since the one before. Stamps that turn
    /// out to have no bound are counted in `counts`.
    pub fn update(&mut self, shared: &Shared, tracker: &Tracker, counts: &mut [Directed<Written>]) {
        self.received = ReceiveClock::of(tracker);
        self.host_bound_ns = tracker.host_bound_ns();
        for ptp in shared.ptp_clocks(self.interfaces.len()) {
            let clock = ptp.map(|ptp| self.index_of(&ptp));
            self.interfaces.push(Interface {
                clock,
                ..Interface::default()
            });
        }
        for (index, clock) in self.clocks.iter_mut().enumerate() {
            let Some(is_unknown) = clock.update() else {
                continue;
            };
            let interfaces = self.interfaces.iter_mut().zip(counts.iter_mut());
            for (interface, counts) in interfaces.filter(|(it, _)| it.clock == Some(index)) {
                let since = std::mem::take(&mut interface.since_reading);
                if is_unknown {
                    counts[Direction::In].hardware.ambiguous += since;
                }
            }
        }
    }

    fn index_of(&mut self, ptp: &Arc<PtpClock>) -> usize {
        let found = self.clocks.iter().position(|it| it.is_of(ptp));
        found.unwrap_or_else(|| {
            self.clocks.push(StampClock::of(ptp));
            self.clocks.len() - 1
        })
    }

    /// Puts into a block how much later than its hardware stamp it was stamped, if it has one.
    #[inline]
    pub fn finish(
        &mut self,
        block: &mut Block<'_>,
        slot: Slot,
        stamp: RawStamp,
        conversion: &Conversion,
    ) -> HardwareFrames {
        let Some(hardware) = block.hardware_stamp() else {
            return HardwareFrames::default();
        };
        let mut frames = HardwareFrames {
            with: 1,
            ..HardwareFrames::default()
        };
        let received = self.received.mono(stamp, conversion);
        let received = received.filter(|_| {
            // Of ktime the time since boot is known also about a step.
            self.received.source == StampSource::Ktime || !conversion.is_ambiguous(stamp)
        });
        let interface = self.interfaces.get_mut(slot.interface() as usize);
        let delay_ns = interface.zip(received).and_then(|(interface, received)| {
            let clock = self.clocks.get(interface.clock?)?;
            let stamped = clock.to_mono(hardware, received)?;
            let delay_ns = received.0.wrapping_sub(stamped.0).cast_signed();
            interface.delays.record(delay_ns);
            interface.since_reading += 1;
            Some(delay_ns)
        });
        frames.unconverted = u64::from(delay_ns.is_none());
        block.set_hardware_delay(delay_ns.unwrap_or(NOT_CONVERTED));
        frames
    }

    /// By interface, the greatest error of its delays so far, ns.
    pub fn bounds_ns(&self) -> Vec<Option<u64>> {
        let bound_ns = |interface: &Interface| {
            let clock = self.clocks.get(interface.clock?)?;
            Some(clock.bound_ns()? + self.host_bound_ns)
        };
        self.interfaces.iter().map(bound_ns).collect()
    }

    /// The delays of an interface.
    pub fn delays(&self, interface: usize) -> Option<&Delays> {
        self.interfaces.get(interface).map(|it| &it.delays)
    }
}

#[cfg(test)]
mod tests;
