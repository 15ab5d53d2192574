//! Records of the layers, put together to packets.

use super::cost::Turns;
use super::hardware::HardwareTimes;
use crate::layers::schema::{FlowResidences, LayerAccount};
use crate::layers::{FlowTable, OwnTime, Passage, Passages, Sighting};
use tscap_clock::{MonoNs, RawStamp, Tracker};
use tscap_programs::ring::KeyRecord;
use tscap_session::{ClockChange, Keys, Progress, Sink, Times};

/// What was found so far.
#[derive(Clone, Debug)]
pub struct Latest {
    /// Flows in the table.
    pub flows: u64,
    /// Of each layer, without what the programs did not record.
    pub accounts: Vec<LayerAccount>,
    /// All packets whose window is over.
    pub all: FlowResidences,
}

/// Packets on their way through the layers. All stamps are of CLOCK_MONOTONIC.
pub(super) struct LayerSink {
    /// How long the programs of each ring have run, ns; it begins anew at 2^32.
    spent: Vec<u32>,
    /// Index of the layer of each interface number.
    layers: Vec<Option<usize>>,
    pub passages: Passages,
    pub flows: FlowTable,
    /// Of the first layer, if that is of hardware; the second one is at XDP then.
    pub hardware: Option<HardwareTimes>,
    turns: Turns,
}

impl LayerSink {
    pub fn new(
        rings: usize,
        layers: Vec<Option<usize>>,
        (passages, flows): (Passages, FlowTable),
        hardware: Option<HardwareTimes>,
        turns: Turns,
    ) -> Self {
        Self {
            spent: vec![0; rings],
            layers,
            passages,
            flows,
            hardware,
            turns,
        }
    }
}

impl Sink for LayerSink {
    const THREAD: &'static str = "tscap-layers";
    const WAITS: bool = true;
    type Records = Keys;
    type Latest = Latest;

    fn begin(&mut self, _: &Tracker) {
        if let Some(hardware) = &mut self.hardware {
            hardware.update();
            self.flows.set_hardware_bound_ns(hardware.bound_ns());
        }
    }

    #[inline]
    fn take(&mut self, ring: usize, record: KeyRecord<'_>, _: &Times) {
        let own = OwnTime {
            ring: ring as u16,
            before_ns: self.spent[ring],
            // Both readings of the clock are cut off to whole nanoseconds.
            run_ns: record.spent_ns.saturating_add(1),
        };
        self.spent[ring] = own.before_ns.wrapping_add(own.run_ns);
        let number = record.slot.interface() as usize;
        let Some(layer) = self.layers.get(number).copied().flatten() else {
            return;
        };
        let Some(key) = record.key else {
            self.passages.see_unkeyed(layer);
            return;
        };
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

    fn settled(&mut self, until: RawStamp, _: &Times) {
        let (flows, turns) = (&mut self.flows, &self.turns);
        let take = &mut |passage: &Passage| flows.take(passage, turns.are_off_during(passage));
        self.passages.close_until(MonoNs(until.0), take);
    }

    /// Residences are of one clock, which nobody sets.
    fn clock_changed(&mut self, _: ClockChange) -> Option<String> {
        None
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }

    fn latest(&mut self, _: &Tracker) -> Latest {
        Latest {
            flows: self.flows.count(),
            accounts: self.passages.accounts().to_vec(),
            all: self.flows.all(),
        }
    }
}
