//! The thread of a measurement at layers: takes records out of the rings, and puts packets
//! together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::cost::Turns;
use super::hardware::HardwareTimes;
use crate::layers::schema::{FlowResidences, LayerAccount};
use crate::layers::{FlowTable, OwnTime, Passage, Passages, Sighting};
use tscap_clock::{MonoNs, RawStamp};
use tscap_engine::Idle;
use tscap_programs::ring::{Consumer, CorruptBlock};

/// A record is in its ring so long after its stamp, unless its CPU is held up for longer, ns:
/// a packet is open for as long again.
const PUBLISHED_NS: u64 = 20_000_000;
/// The table is told the latest figures this often, ns.
const TOLD_EVERY_NS: u64 = 1_000_000_000;

/// What was found so far.
#[derive(Clone, Debug)]
pub struct Latest {
    /// Flows.
    pub flows: u64,
    /// Of each layer, without what the programs did not record.
    pub accounts: Vec<LayerAccount>,
    /// All packets whose window is over.
    pub all: FlowResidences,
}

/// What the thread and the control task tell each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Drain what is there, and end.
    pub stop: AtomicBool,
    /// Something else than records is in a ring.
    pub is_corrupt: AtomicBool,
    /// What a reader must know of the figures.
    pub trouble: Mutex<Vec<String>>,
    /// The latest second, until it is told.
    pub latest: Mutex<Option<Latest>>,
}

/// What the thread owns.
pub(super) struct Drain {
    consumers: Vec<Consumer>,
    /// How long the programs of each ring have run, ns; it begins anew at 2^32.
    spent: Vec<u32>,
    /// Index of the layer of each interface number.
    layers: Vec<Option<usize>>,
    passages: Passages,
    flows: FlowTable,
    /// Of the first layer, if that is of hardware; the second one is at XDP then.
    hardware: Option<HardwareTimes>,
    turns: Turns,
    shared: Arc<Shared>,
    next_told: MonoNs,
    is_corrupt: bool,
}

/// What is left of it.
pub(super) struct Drained {
    pub passages: Passages,
    pub flows: FlowTable,
    pub hardware: Option<HardwareTimes>,
}

impl Drain {
    pub fn new(
        consumers: Vec<Consumer>,
        layers: Vec<Option<usize>>,
        (passages, flows): (Passages, FlowTable),
        hardware: Option<HardwareTimes>,
        turns: Turns,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            spent: vec![0; consumers.len()],
            consumers,
            layers,
            passages,
            flows,
            hardware,
            turns,
            shared,
            next_told: MonoNs(MonoNs::now().0 + TOLD_EVERY_NS),
            is_corrupt: false,
        }
    }

    /// Drains until it is asked to stop and the rings are empty.
    pub fn run(mut self) -> Drained {
        let mut idle = Idle::new(self.consumers.first().map_or(0, Consumer::ring_bytes));
        loop {
            // Before the look at the rings: what was recorded until then is taken out.
            let is_last = self.shared.stop.load(Ordering::Acquire);
            let found = self.drain();
            if is_last && found == 0 {
                return Drained {
                    passages: self.passages,
                    flows: self.flows,
                    hardware: self.hardware,
                };
            }
            if !is_last {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes out what is there. Gives how full the fullest ring was, bytes.
    fn drain(&mut self) -> u64 {
        let before = MonoNs::now();
        let heads: Vec<u64> = self.consumers.iter().map(Consumer::head).collect();
        if let Some(hardware) = &mut self.hardware {
            hardware.update();
            self.flows.set_hardware_bound_ns(hardware.bound_ns());
        }
        let mut peak = 0;
        for (ring, head) in heads.into_iter().enumerate() {
            peak = peak.max(head - self.consumers[ring].next());
            if let Err(corrupt) = self.drain_ring(ring, head) {
                self.give_up(&corrupt);
            }
        }
        let settled = MonoNs(before.0.saturating_sub(PUBLISHED_NS));
        let (flows, turns) = (&mut self.flows, &self.turns);
        let take = &mut |passage: &Passage| flows.take(passage, turns.are_off_during(passage));
        self.passages.close_until(settled, take);
        self.publish(before);
        peak
    }

    fn drain_ring(&mut self, ring: usize, head: u64) -> Result<(), CorruptBlock> {
        let consumer = &mut self.consumers[ring];
        while let Some(mut run) = consumer.run(head, RawStamp::NEVER) {
            if self.is_corrupt {
                let length = run.skip_to_head();
                consumer.take(length);
                break;
            }
            while let Some(record) = run.next_key() {
                let record = record?;
                let own = OwnTime {
                    ring: ring as u16,
                    before_ns: self.spent[ring],
                    // Both readings of the clock are cut off to whole nanoseconds.
                    run_ns: record.spent_ns.saturating_add(1),
                };
                self.spent[ring] = own.before_ns.wrapping_add(own.run_ns);
                let number = record.slot.interface() as usize;
                let Some(layer) = self.layers.get(number).copied().flatten() else {
                    continue;
                };
                let Some(key) = record.key else {
                    self.passages.see_unkeyed(layer);
                    continue;
                };
                // The clock of all programs here.
                let stamp = MonoNs(record.stamp.0);
                let sighting = Sighting {
                    layer,
                    key,
                    stamp,
                    own,
                    segments: record.segments,
                };
                let flows = &mut self.flows;
                let mut flow = || flows.number(record.kept, record.origlen);
                if let Some(hardware) = self.hardware.as_mut().filter(|_| layer == 1)
                    && let Some(stamp) = hardware.of(record.hardware, stamp)
                {
                    let stamped = Sighting {
                        layer: 0,
                        stamp,
                        // There is no program.
                        own: OwnTime { run_ns: 0, ..own },
                        ..sighting
                    };
                    self.passages.see(&stamped, &mut flow);
                }
                self.passages.see(&sighting, flow);
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
        if let Ok(mut trouble) = self.shared.trouble.lock() {
            trouble.push(format!("{corrupt}: please report this"));
        }
    }

    fn publish(&mut self, now: MonoNs) {
        if now < self.next_told {
            return;
        }
        let latest = Latest {
            flows: self.flows.count(),
            accounts: self.passages.accounts().to_vec(),
            all: self.flows.all(),
        };
        if let Ok(mut place) = self.shared.latest.try_lock() {
            *place = Some(latest);
            self.next_told = MonoNs(now.0 + TOLD_EVERY_NS);
        }
    }
}
