//! Keys of packets, on their way to the matchers.

use tscap_common::hook::Slot;

use super::points::Role;
use super::way::WayState;
use crate::{Latest, SeenAt, Sighting};
use tscap_clock::{RawStamp, Tracker};
use tscap_programs::ring::KeyRecord;
use tscap_session::{ClockChange, Keys, Progress, Sink, Times};

/// What was found in a second.
#[derive(Clone, Debug)]
pub struct LiveSecond {
    /// Of each way and exit; `None` if no packet was matched there.
    pub ways: Vec<Vec<Option<Latest>>>,
    /// Packets that are remembered.
    pub remembered: u64,
}

/// The matchers of all ways.
pub(super) struct MatcherSink {
    /// The CPU of each ring.
    cpus: Vec<u32>,
    /// By the number of the slot.
    roles: Vec<Option<(usize, SeenAt)>>,
    pub ways: Vec<WayState>,
    pub memory_bytes: u64,
}

impl MatcherSink {
    pub fn new(
        cpus: Vec<u32>,
        roles: &[(Slot, Role)],
        (ways, memory_bytes): (Vec<WayState>, u64),
    ) -> Self {
        let slots = roles.iter().map(|(slot, _)| slot.0 as usize + 1).max();
        let mut by_slot = vec![None; slots.unwrap_or(0)];
        for (slot, role) in roles {
            by_slot[slot.0 as usize] = Some((role.way, role.at));
        }
        Self {
            cpus,
            roles: by_slot,
            ways,
            memory_bytes,
        }
    }
}

impl Sink for MatcherSink {
    const THREAD: &'static str = "tscap-matcher";
    const WAITS: bool = true;
    type Records = Keys;
    type Latest = LiveSecond;

    fn begin(&mut self, _: &Tracker) {}

    #[inline]
    fn take(&mut self, ring: usize, record: KeyRecord<'_>, times: &Times) {
        let role = self.roles.get(record.slot.0 as usize).copied().flatten();
        let Some((way, at)) = role else {
            return;
        };
        let sighting = record.key.map(|key| Sighting {
            at,
            key,
            stamp: record.stamp,
            cpu: self.cpus[ring],
            length: record.origlen,
        });
        self.ways[way].see(at, sighting.as_ref(), record.kept, times);
    }

    /// The window of a key is open for as long again.
    fn settled(&mut self, until: RawStamp, times: &Times) {
        for way in &mut self.ways {
            way.close_until(until, times);
        }
    }

    fn clock_changed(&mut self, change: ClockChange) -> Option<String> {
        if let ClockChange::Stepped(_) = change {
            // Delays are intervals.
            return None;
        }
        // What is inside has stamps that don't compare with those to come.
        self.ways.iter_mut().for_each(WayState::distrust);
        match change {
            ClockChange::CounterJumped(jump_ns) => Some(format!(
                "the counter of the stamps jumped by {jump_ns} ns: packets that were inside are \
                 counted as ambiguous"
            )),
            ClockChange::Stepped(_) | ClockChange::Recalibrated => None,
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            counted: self.ways.iter().map(WayState::matched).sum(),
            open: self.ways.iter().map(WayState::open).sum(),
        }
    }

    fn latest(&mut self, _: &Tracker) -> LiveSecond {
        LiveSecond {
            ways: self.ways.iter_mut().map(WayState::take_latest).collect(),
            remembered: self.progress().open,
        }
    }
}
