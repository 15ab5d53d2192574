//! The matcher's thread: drains the rings, and matches what it finds there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tscap_common::hook::Slot;

use super::way::WayState;
use crate::{At, Latest, Sighting};
use tscap_clock::{
    Conversion, CrossTimestamp, HostClocks, MonoNs, NsPerCycle, RawStamp, RealNs, Reference,
    Tracker,
};
use tscap_engine::{Idle, Recalibration};
use tscap_programs::ring::{Consumer, CorruptBlock};

/// A record is in its ring so long after its stamp, unless its CPU is held up for longer, ns:
/// the window of a key is open for as long again.
const PUBLISHED_NS: u64 = 20_000_000;
/// CLOCK_MONOTONIC_RAW is read this often, ns: intervals of a counter go by its rate.
const RAW_EVERY_NS: u64 = 1_000_000_000;
/// The table is told the latest figures this often, ns.
const TOLD_EVERY_NS: u64 = 1_000_000_000;

/// What the thread and the control task tell each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Drain what is there, and end.
    pub stop: AtomicBool,
    /// Packets that were matched, at the first exit of all ways.
    pub matched: AtomicU64,
    /// Packets that are remembered.
    pub open: AtomicU64,
    /// Something else than records is in a ring.
    pub is_corrupt: AtomicBool,
    /// What a reader must know of the figures.
    pub trouble: Mutex<Vec<String>>,
    /// New offsets of the rings' stamps.
    pub recalibrated: Mutex<Option<Recalibration>>,
    /// Of each way and exit, the latest second.
    pub latest: Mutex<Vec<Vec<Option<Latest>>>>,
}

/// Which way a program's records are of, and where they are on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    pub slot: Slot,
    pub way: usize,
    pub at: At,
}

/// What the thread owns.
pub(super) struct Drain {
    consumers: Vec<Consumer>,
    /// The CPU of each ring.
    cpus: Vec<u32>,
    clocks: HostClocks,
    tracker: Tracker,
    /// By the number of the slot.
    roles: Vec<Option<(usize, At)>>,
    ways: Vec<WayState>,
    shared: Arc<Shared>,
    next_raw: MonoNs,
    next_told: MonoNs,
    is_corrupt: bool,
}

/// What is left of it.
pub(super) struct Drained {
    pub ways: Vec<WayState>,
    pub tracker: Tracker,
    /// Of the last reading of the clocks, in the stamps' unit.
    pub end: RawStamp,
}

/// How stamps become times, for one drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    conversion: Conversion,
    /// The rate of a counter.
    rate: Option<NsPerCycle>,
}

impl Times {
    pub fn of(tracker: &mut Tracker) -> Self {
        Self {
            conversion: tracker.convert(),
            rate: tracker
                .counter_report()
                .map(|report| report.interval_rate()),
        }
    }

    /// From one stamp to another, by the difference clock, ns.
    #[inline]
    pub fn between(&self, from: RawStamp, to: RawStamp) -> i64 {
        let span = to.0.wrapping_sub(from.0).cast_signed();
        let Some(rate) = self.rate else {
            return span;
        };
        let ns = i64::try_from(rate.duration_ns(span.unsigned_abs())).unwrap_or(i64::MAX);
        if span < 0 { -ns } else { ns }
    }

    /// The time of a stamp.
    #[inline]
    pub fn real(&self, stamp: RawStamp) -> RealNs {
        self.conversion.to_real(stamp)
    }
}

impl Drain {
    pub fn new(
        (consumers, cpus): (Vec<Consumer>, Vec<u32>),
        (clocks, tracker): (HostClocks, Tracker),
        roles: &[Role],
        ways: Vec<WayState>,
        shared: Arc<Shared>,
    ) -> Self {
        let slots = roles.iter().map(|role| role.slot.0 as usize + 1).max();
        let mut by_slot = vec![None; slots.unwrap_or(0)];
        for role in roles {
            by_slot[role.slot.0 as usize] = Some((role.way, role.at));
        }
        let now = MonoNs::now();
        Self {
            consumers,
            cpus,
            clocks,
            tracker,
            roles: by_slot,
            ways,
            shared,
            next_raw: now,
            next_told: MonoNs(now.0 + TOLD_EVERY_NS),
            is_corrupt: false,
        }
    }

    /// Drains until it is asked to stop and the rings are empty.
    pub fn run(mut self) -> Drained {
        let mut idle = Idle::new(self.consumers.first().map_or(0, Consumer::ring_bytes));
        loop {
            // Before the look at the rings: what was recorded until then is taken out.
            let is_last = self.shared.stop.load(Ordering::Acquire);
            let (found, end) = self.drain();
            if is_last && found == 0 {
                return Drained {
                    ways: self.ways,
                    tracker: self.tracker,
                    end,
                };
            }
            if !is_last {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes out what is there. Gives how full the fullest ring was, bytes, and the stamp of
    /// a time before the look at them.
    fn drain(&mut self) -> (u64, RawStamp) {
        self.take_recalibration();
        let before = MonoNs::now();
        let heads: Vec<u64> = self.consumers.iter().map(Consumer::head).collect();
        let cross = self.read_clock();
        let times = Times::of(&mut self.tracker);
        let mut peak = 0;
        for (ring, head) in heads.into_iter().enumerate() {
            peak = peak.max(head - self.consumers[ring].next());
            if let Err(corrupt) = self.drain_ring(ring, head, &times) {
                self.give_up(&corrupt);
            }
        }
        let now = self.tracker.stamp_at(&cross, before);
        let settled = MonoNs(before.0.saturating_sub(PUBLISHED_NS));
        let settled = self.tracker.stamp_at(&cross, settled);
        for way in &mut self.ways {
            way.close_until(settled, &times);
        }
        self.publish(cross.mono[1]);
        (peak, now)
    }

    fn drain_ring(&mut self, ring: usize, head: u64, times: &Times) -> Result<(), CorruptBlock> {
        let (consumer, cpu) = (&mut self.consumers[ring], self.cpus[ring]);
        while let Some(mut run) = consumer.run(head, RawStamp::NEVER) {
            if self.is_corrupt {
                let length = run.skip_to_head();
                consumer.take(length);
                break;
            }
            while let Some(record) = run.next_key() {
                let record = record?;
                let role = self.roles.get(record.slot.0 as usize).copied().flatten();
                let Some((way, at)) = role else {
                    continue;
                };
                let sighting = record.key.map(|key| Sighting {
                    at,
                    key,
                    stamp: record.stamp,
                    cpu,
                    length: record.origlen,
                });
                self.ways[way].see(at, sighting.as_ref(), record.kept, times);
            }
            let length = run.taken();
            consumer.take(length);
        }
        consumer.release();
        Ok(())
    }

    /// Nothing in the rings can be trusted from here on.
    fn give_up(&mut self, corrupt: &CorruptBlock) {
        self.is_corrupt = true;
        self.shared.is_corrupt.store(true, Ordering::Relaxed);
        self.trouble(format!("{corrupt}: please report this"));
    }

    fn trouble(&self, what: String) {
        if let Ok(mut trouble) = self.shared.trouble.lock() {
            trouble.push(what);
        }
    }

    fn take_recalibration(&mut self) {
        let found = self.shared.recalibrated.lock();
        if let Some(found) = found.ok().and_then(|mut found| found.take()) {
            for (consumer, offset) in self.consumers.iter_mut().zip(&found.offsets) {
                consumer.set_stamp_offset(*offset);
            }
            self.tracker.set_stamp_error_ns(found.stamp_error_ns);
            // What is inside has stamps by other offsets.
            self.ways.iter_mut().for_each(WayState::distrust);
        }
    }

    fn read_clock(&mut self) -> CrossTimestamp {
        let cross = self.tracker.read(&mut self.clocks);
        if let Some(jump_ns) = self.tracker.observe(&cross).counter_jump_ns() {
            self.ways.iter_mut().for_each(WayState::distrust);
            self.trouble(format!(
                "the counter of the stamps jumped by {jump_ns} ns: packets that were inside are \
                 counted as ambiguous"
            ));
        }
        let now = cross.mono[1];
        if now >= self.next_raw
            && let Some(raw) = Reference::<CrossTimestamp>::raw(&mut self.clocks)
        {
            self.tracker.observe_raw(&raw);
            self.next_raw = MonoNs(now.0 + RAW_EVERY_NS);
        }
        cross
    }

    fn publish(&mut self, now: MonoNs) {
        let matched = self.ways.iter().map(WayState::matched).sum();
        self.shared.matched.store(matched, Ordering::Relaxed);
        let open = self.ways.iter().map(WayState::open).sum();
        self.shared.open.store(open, Ordering::Relaxed);
        if now >= self.next_told
            && let Ok(mut latest) = self.shared.latest.try_lock()
        {
            *latest = self.ways.iter_mut().map(WayState::take_latest).collect();
            self.next_told = MonoNs(now.0 + TOLD_EVERY_NS);
        }
    }
}
