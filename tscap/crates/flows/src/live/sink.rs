//! Packets in order of time, on their way to the flows.

use tscap_common::hook::Slot;

use crate::schema::{Account, FlowReport, SortOrder};
use crate::{Flows, Packet, PlaceClock};
use tscap_clock::{CounterReport, RawStamp, StampSource, Tracker, interval_ns};
use tscap_programs::ring::Block;
use tscap_session::{ClockChange, Frames, Progress, Sink, Times};
use tscap_streams::{DelayBasis, HostClocksBeside, HostMoment};

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

/// What flows are told of each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub top: usize,
    pub sort: SortOrder,
}

/// The flows of all places.
pub(super) struct FlowSink {
    beside: HostClocksBeside,
    /// Where the stamps are not of the TSC, or the times not the host's.
    moment: Option<HostMoment>,
    /// The times are not those of the host's clocks, which a sender reads.
    is_by_reference: bool,
    start: RawStamp,
    /// By the number of the slot.
    places: Vec<Option<u16>>,
    pub clocks: Vec<PlaceClock>,
    pub flows: Flows,
    shown: Shown,
}

impl FlowSink {
    pub fn new(
        (slots, clocks): (&[Slot], Vec<PlaceClock>),
        (flows, shown): (Flows, Shown),
        start: RawStamp,
    ) -> Self {
        let most = slots.iter().map(|slot| slot.0 as usize + 1).max();
        let mut places = vec![None; most.unwrap_or(0)];
        for (place, slot) in (0..).zip(slots) {
            places[slot.0 as usize] = Some(place);
        }
        Self {
            beside: HostClocksBeside::default(),
            moment: None,
            is_by_reference: false,
            start,
            places,
            clocks,
            flows,
            shown,
        }
    }

    /// How far stamps can be trusted as of now.
    pub fn judge_clocks(&mut self, tracker: &Tracker) {
        let counter = tracker.counter_report();
        // Each stamp is off by the error and its rounding.
        let ends_ns = 2 * (tracker.stamp_error_ns() + 1);
        let host_bound_ns = tracker.host_bound_ns();
        let mut offsets: Vec<_> = tracker
            .segments()
            .iter()
            .map(|it| it.tai_offset_s)
            .collect();
        offsets.dedup();
        for clock in &mut self.clocks {
            clock.counter = counter;
            let intervals = &mut clock.place.intervals;
            intervals.ends_ns = Some(ends_ns);
            intervals.rate_ppb = counter.map_or(0, |it| it.interval_bound_ppb());
            if let DelayBasis::Clocks {
                tai_offsets_s,
                host_bound_ns: bound,
                utc_bound_ns,
                ..
            } = &mut clock.place.delays
            {
                tai_offsets_s.clone_from(&offsets);
                *bound = host_bound_ns;
                if let Some(bounds) = tracker.reference() {
                    *utc_bound_ns = bounds.utc_ns();
                }
            }
        }
    }

    fn set_counters(&mut self, counter: Option<CounterReport>) {
        for clock in &mut self.clocks {
            clock.counter = counter;
        }
    }
}

impl Sink for FlowSink {
    const THREAD: &'static str = "tscap-flows";
    const WAITS: bool = false;
    type Records = Frames;
    type Latest = Latest;

    fn begin(&mut self, tracker: &Tracker) {
        self.is_by_reference = tracker.reference().is_some();
        if tracker.source() != StampSource::Tsc || self.is_by_reference {
            self.beside.read();
        }
        self.moment = self.beside.moment();
        self.set_counters(tracker.counter_report());
    }

    #[inline]
    fn take(&mut self, _: usize, block: Block<'_>, times: &Times) {
        let place = self.places.get(block.slot().0 as usize);
        let Some(place) = place.copied().flatten() else {
            return;
        };
        let stamp = block.raw_stamp();
        let counter = self.clocks[usize::from(place)].counter.as_ref();
        let since_start = interval_ns(self.start, stamp, counter);
        let tai = times.tai(stamp);
        let by_counter = counter
            .filter(|_| !self.is_by_reference)
            .map(|counter| HostMoment {
                tsc: stamp,
                tai,
                rate: counter.ns_per_cycle_2_58,
            });
        let packet = Packet {
            place,
            stamp,
            at_ns: since_start.max(0).unsigned_abs(),
            tai: Some(tai),
            host: by_counter.or(self.moment),
            data: block.data(),
            origlen: block.origlen(),
        };
        self.flows.add(&packet, &self.clocks);
    }

    fn settled(&mut self, _: RawStamp, _: &Times) {}

    fn clock_changed(&mut self, change: ClockChange) -> Option<String> {
        match change {
            ClockChange::CounterJumped(jump_ns) => Some(format!(
                "the counter of the stamps jumped by {jump_ns} ns: gaps and variations over that \
                 moment are wrong by as much"
            )),
            ClockChange::Stepped(step_ns) => Some(format!(
                "the system clock was set by {step_ns} ns: one-way delays from another host are \
                 off by as much before or after it; gaps are not"
            )),
            ClockChange::Recalibrated => None,
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            counted: self.flows.account().seen,
            open: 0,
        }
    }

    fn latest(&mut self, tracker: &Tracker) -> Latest {
        self.judge_clocks(tracker);
        let Shown { top, sort } = self.shown;
        Latest {
            flows: self.flows.len() as u64,
            account: self.flows.account().clone(),
            top: self.flows.top(top, sort, &self.clocks),
        }
    }
}
