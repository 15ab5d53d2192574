//! The table of flows, and the account of all packets.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::flow::{Flow, OtherDirection, Packet};
use super::key::FlowKey;
use super::look::{Carries, Found, Look, look};
use super::rtp::ClockRates;
use super::schema::{Account, FlowBy, FlowReport, Place, SortOrder, StreamFrames};
use super::tcp::Segment;
use super::voice::VoiceOptions;
use tscap_clock::CounterReport;
use tscap_streams::{Checksum, Malformed};

/// What flows are, and how many there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowOptions {
    /// What a flow is.
    pub by: FlowBy,
    /// Whether packets inside VXLAN and GRE are the ones that count.
    pub looks_inside: bool,
    /// Most flows at a time.
    pub max_flows: usize,
    /// Clock rates of RTP's payload types.
    pub rates: ClockRates,
    /// What is assumed of voice.
    pub voice: VoiceOptions,
}

impl FlowOptions {
    /// Memory that the table takes at most, bytes: flows and their index, the longest lists of
    /// [`Flows::reports`] not among them.
    pub fn memory_bytes(&self) -> usize {
        // The index is at most 7/8 full, and has twice as many places when it grows.
        let index = size_of::<(FlowKey, u32)>() + 1;
        self.max_flows * (Flow::most_bytes(self.by) + size_of::<Links>() + 2 * index)
    }
}

/// What the clock of each place says, when figures are made.
#[derive(Clone, Debug)]
pub struct PlaceClock {
    /// Where, and how far it can be trusted.
    pub place: Place,
    /// The rate of its counter, where a counter stamps.
    pub counter: Option<CounterReport>,
    /// Where the same interface's packets of the other direction are stamped, by the same clock;
    /// `None` if they are not.
    pub opposite: Option<u16>,
}

const NONE: u32 = u32::MAX;

/// The neighbours of a flow in the order of their latest packets.
#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

/// All flows so far. No memory is taken for a packet of a flow that is known, but for its first
/// round trip.
#[derive(Debug)]
pub struct Flows {
    options: FlowOptions,
    /// Whether the memory of streams of `tscap gen` may grow with them.
    streams_grow: bool,
    account: Account,
    /// By place, where streams of `tscap gen` are looked for.
    frames: Vec<StreamFrames>,
    index: HashMap<FlowKey, u32>,
    flows: Vec<Flow>,
    links: Vec<Links>,
    newest: u32,
    oldest: u32,
    /// Flows that were taken out of the table, up to as many as it holds.
    evicted: Vec<FlowReport>,
    /// Flows that there have been.
    begun: u64,
}

impl Flows {
    /// None yet. Of streams of `tscap gen` all numbers are kept if `streams_grow`: no packet is
    /// too late then, and their figures are fine.
    pub fn new(options: FlowOptions, streams_grow: bool) -> Self {
        Self {
            streams_grow,
            frames: Vec::new(),
            account: Account::default(),
            index: HashMap::new(),
            flows: Vec::new(),
            links: Vec::new(),
            newest: NONE,
            oldest: NONE,
            evicted: Vec::new(),
            begun: 0,
            options,
        }
    }

    /// Takes in a packet, in order of arrival, with the clocks of all places.
    ///
    /// # Panics
    /// If its place has no clock.
    #[inline]
    pub fn add(&mut self, packet: &Packet<'_>, clocks: &[PlaceClock]) {
        self.account.seen += 1;
        let FlowOptions {
            by, looks_inside, ..
        } = self.options;
        let look = look(packet.data, packet.origlen, by, looks_inside);
        if by == FlowBy::Gen {
            self.frames_of(packet.place).count(&look);
        }
        match look {
            Look::Flow(found) => self.add_to_flow(packet, &found, clocks),
            Look::Fragment => self.account.fragments += 1,
            Look::NonIp => self.account.non_ip += 1,
            Look::WithoutKey => self.account.without_key += 1,
            Look::Malformed(Malformed::Cut) => self.account.cut += 1,
            Look::Malformed(_) => self.account.malformed += 1,
        }
    }

    fn frames_of(&mut self, place: u16) -> &mut StreamFrames {
        let place = usize::from(place);
        if self.frames.len() <= place {
            self.frames.resize(place + 1, StreamFrames::default());
        }
        &mut self.frames[place]
    }

    /// Counts a frame of an interface that is not Ethernet.
    pub(crate) fn add_not_ethernet(&mut self, place: u16) {
        if self.options.by == FlowBy::Gen {
            self.frames_of(place).count(&Look::NonIp);
        }
        self.account.seen += 1;
        self.account.not_ethernet += 1;
    }

    /// Counts a frame without a time.
    pub(crate) fn add_untimed(&mut self) {
        self.account.seen += 1;
        self.account.untimed += 1;
    }

    fn add_to_flow(&mut self, packet: &Packet<'_>, found: &Found, clocks: &[PlaceClock]) {
        self.account.in_flows += 1;
        let key = FlowKey {
            place: packet.place,
            vlans: found.vlans,
            is_inner: found.is_inner,
            id: found.id,
        };
        let number = match self.index.get(&key).copied() {
            None => self.begin(key, packet, found, clocks),
            Some(number) => {
                let counter = clocks[usize::from(packet.place)].counter.as_ref();
                let flow = &mut self.flows[number as usize];
                flow.add(packet, &found.carries, counter, &self.options.rates);
                if number != self.newest {
                    self.unlink(number);
                    self.link_newest(number);
                }
                number
            }
        };
        if let Carries::Tcp(segment) = &found.carries
            && segment.ack.is_some()
        {
            self.answer(number, packet, segment, clocks);
        }
    }

    /// Begins a flow with its first packet; gives its number.
    fn begin(
        &mut self,
        key: FlowKey,
        packet: &Packet<'_>,
        found: &Found,
        clocks: &[PlaceClock],
    ) -> u32 {
        let flow = Flow::new(
            key,
            packet,
            &found.carries,
            &self.options.rates,
            self.streams_grow,
        );
        let number = if self.flows.len() < self.options.max_flows {
            self.flows.push(flow);
            let links = Links {
                newer: NONE,
                older: NONE,
            };
            self.links.push(links);
            (self.flows.len() - 1) as u32
        } else {
            let number = self.oldest;
            self.unlink(number);
            let idle = std::mem::replace(&mut self.flows[number as usize], flow);
            self.index.remove(&idle.key);
            self.evict(&idle, clocks);
            number
        };
        self.link_newest(number);
        self.index.insert(key, number);
        self.begun += 1;
        number
    }

    /// Tells the other direction of a connection what a segment of the flow `number` acknowledges.
    #[inline]
    fn answer(
        &mut self,
        number: u32,
        packet: &Packet<'_>,
        segment: &Segment,
        clocks: &[PlaceClock],
    ) {
        let clock = &clocks[usize::from(packet.place)];
        let begun = self.begun;
        let flow = &mut self.flows[number as usize];
        let key = flow.key;
        let Some(other) = flow.other_direction() else {
            return;
        };
        if other.as_of != begun {
            let known = other.number;
            let found = self.other_direction(&key, known, clock.opposite);
            if let Some(other) = self.flows[number as usize].other_direction() {
                *other = OtherDirection {
                    number: found,
                    as_of: begun,
                };
            }
        }
        let flow = &mut self.flows[number as usize];
        let other = flow.other_direction().and_then(|it| it.number);
        if let Some(other) = other {
            let flow = &mut self.flows[other as usize];
            flow.answered(segment, packet.stamp, clock.counter.as_ref());
        }
    }

    /// The number of the flow whose packets a flow acknowledges. They are stamped in the other
    /// direction of the interface, or at the same place where both directions pass it, as on a
    /// port that mirrors another.
    fn other_direction(
        &self,
        key: &FlowKey,
        known: Option<u32>,
        opposite: Option<u16>,
    ) -> Option<u32> {
        let opposite = opposite.and_then(|place| key.other_direction(place));
        if known.is_some_and(|it| opposite == Some(self.flows[it as usize].key)) {
            return known;
        }
        let here = key.other_direction(key.place);
        let places = [opposite, here].into_iter().flatten();
        places.filter_map(|it| self.index.get(&it).copied()).next()
    }

    fn evict(&mut self, idle: &Flow, clocks: &[PlaceClock]) {
        let evicted = &mut self.account.evicted;
        evicted.flows += 1;
        if self.evicted.len() < self.options.max_flows {
            let report = report_of(idle, clocks, &self.options, false);
            self.evicted.push(FlowReport {
                evicted: true,
                ..report
            });
            return;
        }
        evicted.unlisted += 1;
        evicted.unlisted_packets += idle.packets;
        evicted.unlisted_bytes += idle.bytes;
        evicted.unlisted_lost += idle.lost();
    }

    fn unlink(&mut self, number: u32) {
        let Links { newer, older } = self.links[number as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, number: u32) {
        let older = self.newest;
        self.links[number as usize] = Links { newer: NONE, older };
        match older {
            NONE => self.oldest = number,
            older => self.links[older as usize].newer = number,
        }
        self.newest = number;
    }

    /// What the frames of each place are, where streams of `tscap gen` are looked for.
    pub(crate) fn frames(&self) -> Option<Vec<StreamFrames>> {
        (self.options.by == FlowBy::Gen).then(|| self.frames.clone())
    }

    /// The account so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Flows in the table.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The first `top` flows of the table by `sort`, without histogram and series.
    pub fn top(&self, top: usize, sort: SortOrder, clocks: &[PlaceClock]) -> Vec<FlowReport> {
        let order = self.order(top, sort);
        let flows = order.into_iter().map(|number| &self.flows[number]);
        flows
            .map(|flow| report_of(flow, clocks, &self.options, false))
            .collect()
    }

    /// All flows by `sort`, those in the table first; the first `top` with histogram and
    /// series.
    pub fn reports(
        mut self,
        top: usize,
        sort: SortOrder,
        clocks: &[PlaceClock],
    ) -> Vec<FlowReport> {
        let order = self.order(self.flows.len(), sort);
        let flows = order.into_iter().enumerate();
        let flows = flows.map(|(rank, at)| {
            let flow = &self.flows[at];
            report_of(flow, clocks, &self.options, rank < top)
        });
        let mut all: Vec<_> = flows.collect();
        all.append(&mut self.evicted);
        all
    }

    /// Numbers of the first `top` flows by `sort`; of equals, the earlier flow first.
    fn order(&self, top: usize, sort: SortOrder) -> Vec<usize> {
        let ranks = self.flows.iter().map(|flow| flow.rank(sort));
        let mut ranks: Vec<_> = ranks.enumerate().collect();
        let by_rank = |one: &(usize, f64), other: &(usize, f64)| -> Ordering {
            other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
        };
        if top < ranks.len() {
            ranks.select_nth_unstable_by(top, by_rank);
            ranks.truncate(top);
        }
        ranks.sort_unstable_by(by_rank);
        ranks.into_iter().map(|(number, _)| number).collect()
    }
}

/// The places of the clocks, with what their frames are.
pub(crate) fn places(clocks: Vec<PlaceClock>, frames: Option<Vec<StreamFrames>>) -> Vec<Place> {
    let of = |place: usize| {
        let frames = frames.as_ref()?;
        Some(frames.get(place).copied().unwrap_or_default())
    };
    let places = clocks.into_iter().enumerate().map(|(place, clock)| Place {
        streams: of(place),
        ..clock.place
    });
    places.collect()
}

impl StreamFrames {
    fn count(&mut self, look: &Look) {
        self.frames += 1;
        let (kind, detail) = match look {
            Look::Flow(Found {
                carries: Carries::Gen(_, checksum),
                ..
            }) => {
                let detail = match checksum {
                    Checksum::Right => &mut self.checksum_right,
                    Checksum::Absent => &mut self.checksum_absent,
                    Checksum::Unknown => &mut self.checksum_unknown,
                };
                (&mut self.streams, detail)
            }
            Look::Malformed(malformed) => {
                let detail = match malformed {
                    Malformed::Cut => &mut self.cut,
                    Malformed::Length => &mut self.length_wrong,
                    Malformed::Checksum => &mut self.checksum_wrong,
                    Malformed::Port => &mut self.port_wrong,
                };
                (&mut self.malformed, detail)
            }
            Look::Flow(_) | Look::Fragment | Look::NonIp | Look::WithoutKey => {
                self.others += 1;
                return;
            }
        };
        *kind += 1;
        *detail += 1;
    }
}

fn report_of(
    flow: &Flow,
    clocks: &[PlaceClock],
    options: &FlowOptions,
    is_whole: bool,
) -> FlowReport {
    let clock = &clocks[usize::from(flow.key.place)];
    flow.report(&clock.place, clock.counter.as_ref(), options, is_whole)
}

#[cfg(test)]
mod tests;
