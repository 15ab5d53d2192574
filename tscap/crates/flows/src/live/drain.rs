//! The thread of a live measurement: takes packets out of the rings in order of time, and
//! gives them to the flows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tscap_common::hook::Slot;

use crate::schema::{Account, FlowReport, Sort};
use crate::{Flows, Packet, PlaceClock};
use tscap_clock::interval_ns;
use tscap_clock::{
    Conversion, CrossTimestamp, HostClocks, MonoNs, Observation, RawStamp, Reference, StampSource,
    TaiNs, Tracker,
};
use tscap_engine::{Idle, Recalibration};
use tscap_programs::ring::{Block, Consumer, CorruptBlock, Merge};
use tscap_streams::{DelayBasis, HostClocksBeside, HostMoment};
use tscap_time::NS_PER_S;

/// A packet is in its ring so long after its stamp, unless its CPU is held up for longer, ns;
/// as in a capture.
const WINDOW_NS: u64 = 100_000;
/// CLOCK_MONOTONIC_RAW is read this often, ns: intervals of a counter go by its rate.
const RAW_EVERY_NS: u64 = 1_000_000_000;
/// The table is told the latest figures this often, ns.
const TOLD_EVERY_NS: u64 = 1_000_000_000;

/// The flows that come first, at a moment.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    /// Flows in the table.
    pub flows: u64,
    /// The account so far, without what the programs did not record.
    pub account: Account,
    /// Those that come first.
    pub top: Vec<FlowReport>,
}

/// What the thread and the control task tell each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Drain what is there, and end.
    pub stop: AtomicBool,
    pub seen: AtomicU64,
    /// Something else than blocks is in a ring.
    pub is_corrupt: AtomicBool,
    /// What a reader must know of the figures.
    pub trouble: Mutex<Vec<String>>,
    /// New offsets of the rings' stamps.
    pub recalibrated: Mutex<Option<Recalibration>>,
    /// The latest second, until it is told.
    pub latest: Mutex<Option<Latest>>,
}

/// What flows are told of each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub top: usize,
    pub sort: Sort,
}

/// What the thread owns.
pub(super) struct Drain {
    consumers: Vec<Consumer>,
    merge: Merge,
    clocks: HostClocks,
    tracker: Tracker,
    beside: HostClocksBeside,
    start: RawStamp,
    /// By the number of the slot.
    places: Vec<Option<u16>>,
    place_clocks: Vec<PlaceClock>,
    flows: Flows,
    shown: Shown,
    shared: Arc<Shared>,
    next_raw: MonoNs,
    next_told: MonoNs,
    is_corrupt: bool,
}

/// What is left of it.
pub(super) struct Drained {
    pub flows: Flows,
    pub clocks: Vec<PlaceClock>,
}

/// How stamps become times, for one drain.
struct Times {
    conversion: Conversion,
    tai_offset_ns: i64,
    start: RawStamp,
    /// Where the stamps are not of the TSC.
    beside: Option<HostMoment>,
}

impl Drain {
    pub fn new(
        consumers: Vec<Consumer>,
        (clocks, tracker): (HostClocks, Tracker),
        places: (&[Slot], Vec<PlaceClock>),
        (flows, shown): (Flows, Shown),
        shared: Arc<Shared>,
        start: RawStamp,
    ) -> Self {
        let (slots, place_clocks) = places;
        let most = slots.iter().map(|slot| slot.0 as usize + 1).max();
        let mut by_slot = vec![None; most.unwrap_or(0)];
        for (place, slot) in (0..).zip(slots) {
            by_slot[slot.0 as usize] = Some(place);
        }
        let now = MonoNs::now();
        Self {
            merge: Merge::new(consumers.len()),
            consumers,
            clocks,
            tracker,
            beside: HostClocksBeside::default(),
            start,
            places: by_slot,
            place_clocks,
            flows,
            shown,
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
            let found = self.drain(is_last);
            if is_last && found == 0 {
                self.judge_clocks();
                return Drained {
                    flows: self.flows,
                    clocks: self.place_clocks,
                };
            }
            if !is_last {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes out what is there; unless it is the last time, only what nothing can precede any
    /// more. Gives how full the fullest ring was, bytes.
    fn drain(&mut self, is_last: bool) -> u64 {
        self.take_recalibration();
        let before = MonoNs::now();
        let heads: Vec<u64> = self.consumers.iter().map(Consumer::head).collect();
        let cross = self.read_clock();
        if self.tracker.source() != StampSource::Tsc {
            self.beside.read();
        }
        let fullest = self.consumers.iter().zip(&heads);
        let peak = fullest.map(|(consumer, head)| head - consumer.next()).max();
        let peak = peak.unwrap_or(0);
        let ring_bytes = self.consumers.first().map_or(0, Consumer::ring_bytes) as u64;
        // Rather a late packet than a lost one.
        let holds_back = !is_last && self.consumers.len() > 1 && peak <= ring_bytes / 2;
        let horizon = match holds_back {
            true => {
                let until = MonoNs(before.0.saturating_sub(WINDOW_NS));
                self.tracker.stamp_at(&cross, until)
            }
            false => RawStamp::NEVER,
        };
        if peak > 0 {
            let times = self.times();
            if let Err(corrupt) = self.take_out(&heads, horizon, &times) {
                self.give_up(&corrupt);
            }
        }
        if self.is_corrupt {
            self.skip(&heads);
        }
        self.publish(cross.mono[1]);
        peak
    }

    fn times(&mut self) -> Times {
        let counter = self.tracker.counter_report();
        let clocks = self.place_clocks.iter_mut();
        clocks.for_each(|clock| clock.counter = counter);
        Times {
            conversion: self.tracker.convert(),
            tai_offset_ns: self.tracker.current().tai_offset_s * NS_PER_S,
            start: self.start,
            beside: self.beside.moment(),
        }
    }

    fn take_out(
        &mut self,
        heads: &[u64],
        horizon: RawStamp,
        times: &Times,
    ) -> Result<(), CorruptBlock> {
        for (ring, consumer) in self.consumers.iter_mut().enumerate() {
            let first = consumer.next_stamp(heads[ring]);
            let first = first.filter(|stamp| *stamp <= horizon);
            self.merge.offer(ring, first);
        }
        while let Some(turn) = self.merge.turn() {
            let ring = turn.ring;
            let consumer = &mut self.consumers[ring];
            let until = turn.until.min(horizon);
            let run = consumer.run(heads[ring], until);
            let mut run = run.expect("a ring whose turn it is has a block");
            let mut outcome = Ok(());
            while let Some(block) = run.next_block() {
                match block {
                    Ok(block) => add(
                        &mut self.flows,
                        &block,
                        &self.places,
                        &self.place_clocks,
                        times,
                    ),
                    Err(corrupt) => {
                        outcome = Err(corrupt);
                        break;
                    }
                }
            }
            let length = run.taken();
            consumer.take(length);
            consumer.release();
            outcome?;
            let next = consumer.next_stamp(heads[ring]);
            self.merge
                .offer(ring, next.filter(|stamp| *stamp <= horizon));
        }
        Ok(())
    }

    /// Nothing in the rings can be trusted from here on.
    fn give_up(&mut self, corrupt: &CorruptBlock) {
        self.is_corrupt = true;
        self.shared.is_corrupt.store(true, Ordering::Relaxed);
        self.trouble(format!("{corrupt}: please report this"));
    }

    fn skip(&mut self, heads: &[u64]) {
        for (consumer, head) in self.consumers.iter_mut().zip(heads) {
            let length = consumer
                .run(*head, RawStamp::NEVER)
                .map(|mut run| run.skip_to_head());
            consumer.take(length.unwrap_or(0));
            consumer.release();
        }
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
        }
    }

    fn read_clock(&mut self) -> CrossTimestamp {
        let cross = self.tracker.read(&mut self.clocks);
        let seen = self.tracker.observe(&cross);
        if let Some(jump_ns) = seen.counter_jump_ns() {
            self.trouble(format!(
                "the counter of the stamps jumped by {jump_ns} ns: gaps and variations over that \
                 moment are wrong by as much"
            ));
        }
        if let Observation::Stepped { step_ns, .. } = seen {
            self.trouble(format!(
                "the system clock was set by {step_ns} ns: one-way delays from another host are \
                 off by as much before or after it; gaps are not"
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
        let seen = self.flows.account().seen;
        self.shared.seen.store(seen, Ordering::Relaxed);
        if now < self.next_told {
            return;
        }
        self.judge_clocks();
        let Shown { top, sort } = self.shown;
        let latest = Latest {
            flows: self.flows.len() as u64,
            account: self.flows.account().clone(),
            top: self.flows.top(top, sort, &self.place_clocks),
        };
        if let Ok(mut place) = self.shared.latest.try_lock() {
            *place = Some(latest);
            self.next_told = MonoNs(now.0 + TOLD_EVERY_NS);
        }
    }

    /// How far stamps can be trusted as of now.
    fn judge_clocks(&mut self) {
        let counter = self.tracker.counter_report();
        // Each stamp is off by the error and its rounding.
        let ends_ns = 2 * (self.tracker.stamp_error_ns() + 1);
        let host_bound_ns = self.tracker.host_bound_ns();
        let mut offsets: Vec<_> = self
            .tracker
            .segments()
            .iter()
            .map(|it| it.tai_offset_s)
            .collect();
        offsets.dedup();
        for clock in &mut self.place_clocks {
            clock.counter = counter;
            let intervals = &mut clock.place.intervals;
            intervals.ends_ns = Some(ends_ns);
            intervals.rate_ppb = counter.map_or(0, |it| it.interval_bound_ppb());
            if let DelayBasis::Clocks {
                tai_offsets_s,
                host_bound_ns: bound,
                ..
            } = &mut clock.place.delays
            {
                tai_offsets_s.clone_from(&offsets);
                *bound = host_bound_ns;
            }
        }
    }
}

#[inline]
fn add(
    flows: &mut Flows,
    block: &Block<'_>,
    places: &[Option<u16>],
    clocks: &[PlaceClock],
    times: &Times,
) {
    let Some(place) = places.get(block.slot().0 as usize).copied().flatten() else {
        return;
    };
    let stamp = block.raw_stamp();
    let counter = clocks[usize::from(place)].counter.as_ref();
    let since_start = interval_ns(times.start, stamp, counter);
    let real = times.conversion.to_real(stamp);
    let tai = TaiNs(real.0.wrapping_add_signed(times.tai_offset_ns));
    let by_counter = counter.map(|counter| HostMoment {
        tsc: stamp,
        tai,
        rate: counter.ns_per_cycle_2_58,
    });
    let packet = Packet {
        place,
        stamp,
        at_ns: since_start.max(0).unsigned_abs(),
        tai: Some(tai),
        host: by_counter.or(times.beside),
        data: block.data(),
        origlen: block.origlen(),
    };
    flows.add(&packet, clocks);
}
