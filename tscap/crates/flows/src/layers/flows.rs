//! Residences of packets, by flow.

use std::collections::HashMap;

use super::passages::{MOST_LAYERS, Passage};
use super::schema::{FlowResidences, OwnPrograms, Residence};
use crate::key::FlowId;
use crate::look::{Look, look};
use crate::schema::{Figures, FlowBy};
use tscap_programs::hook::Layer;
use tscap_statistics::Distribution;

/// Number of the flow that takes what is of no other.
const OTHERS: u32 = 0;
/// Stamps of programs have a resolution of 1 ns (CLOCK_MONOTONIC).
const RESOLUTION_NS: u64 = 1;

/// What a [`FlowTable`] has measured.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReports {
    /// All packets together, with distributions.
    pub all: FlowResidences,
    /// Each flow, that of the most packets first.
    pub flows: Vec<FlowResidences>,
    /// Packets of flows that the table had no room for, and of none.
    pub others: FlowResidences,
}

/// The flows so far.
#[derive(Debug)]
pub struct FlowTable {
    layers: Vec<Layer>,
    by: FlowBy,
    looks_inside: bool,
    max_flows: usize,
    index: HashMap<(FlowId, bool), u32>,
    flows: Vec<Flow>,
    all: Flow,
    /// Greatest error of the times of hardware stamps, ns.
    hardware_bound_ns: u64,
}

#[derive(Debug)]
struct Flow {
    name: String,
    packets: u64,
    in_cost_turns: u64,
    /// Between each layer and the next one, then between the first and the last.
    times: Vec<Times>,
}

#[derive(Clone, Debug, Default)]
struct Times {
    /// None yet of a flow whose packets don't get there.
    values: Option<Distribution>,
    went_back: u64,
    /// What tscap's own programs took of all values together, and the most of one, ns.
    own_ns: u64,
    most_own_ns: u64,
}

impl FlowTable {
    /// Of packets at these layers, two at least. No more than `max_flows` are told apart.
    pub fn new(layers: Vec<Layer>, by: FlowBy, looks_inside: bool, max_flows: usize) -> Self {
        let spans = layers.len();
        let flow = |name: &str| Flow::new(name.to_owned(), spans);
        Self {
            flows: vec![flow("all others")],
            all: flow("all packets"),
            index: HashMap::new(),
            layers,
            by,
            looks_inside,
            max_flows,
            hardware_bound_ns: 0,
        }
    }

    /// From here on the times of hardware stamps may be off by so much.
    pub fn set_hardware_bound_ns(&mut self, bound_ns: u64) {
        self.hardware_bound_ns = bound_ns;
    }

    /// Greatest error of a residence that begins at this layer, ns.
    fn bound_from(&self, layer: Layer) -> u64 {
        let begin = match layer {
            Layer::Hw => self.hardware_bound_ns,
            _ => RESOLUTION_NS,
        };
        begin + RESOLUTION_NS
    }

    /// Memory that `max_flows` take at most, bytes.
    pub fn most_bytes(max_flows: usize) -> usize {
        let times = MOST_LAYERS * (size_of::<Times>() + Distribution::fixed_bytes(false));
        // Of a name of two IPv6 addresses; the index as it grows.
        max_flows * (size_of::<Flow>() + times + 128 + 2 * size_of::<(FlowId, u64)>())
    }

    /// Number of the flow of a packet with these first bytes.
    pub fn number(&mut self, kept: &[u8], origlen: u32) -> u32 {
        let Look::Flow(found) = look(kept, origlen, self.by, self.looks_inside) else {
            return OTHERS;
        };
        let key = (found.id, found.is_inner);
        if let Some(number) = self.index.get(&key) {
            return *number;
        }
        if self.index.len() == self.max_flows {
            return OTHERS;
        }
        let number = self.flows.len() as u32;
        let inner = if found.is_inner { " (inner)" } else { "" };
        let name = format!("{}{inner}", found.id);
        self.flows.push(Flow::new(name, self.layers.len()));
        self.index.insert(key, number);
        number
    }

    /// Takes in a packet, with its times unless it is one of a turn in which costs were
    /// measured.
    pub fn take(&mut self, passage: &Passage, is_timed: bool) {
        let layers = self.layers.len();
        for flow in [&mut self.all, &mut self.flows[passage.flow as usize]] {
            flow.take(passage, layers, is_timed);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.index.len() as u64
    }

    /// All packets together, as of now.
    pub fn all(&self) -> FlowResidences {
        self.report(&self.all, false)
    }

    /// What was measured of all packets.
    pub fn reports(self) -> FlowReports {
        let mut flows = self.flows.iter().map(|flow| self.report(flow, false));
        let others = flows.next().expect("the first one is always there");
        // All packets of one can be like others.
        let mut flows: Vec<_> = flows.filter(|flow| flow.packets > 0).collect();
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.packets));
        FlowReports {
            all: self.report(&self.all, true),
            flows,
            others,
        }
    }

    fn report(&self, flow: &Flow, has_histogram: bool) -> FlowResidences {
        let residences = spans(self.layers.len()).zip(&flow.times);
        let residences = residences.map(|((from, to), times)| {
            let values = times.values.as_ref();
            let histogram = values.filter(|_| has_histogram).map(Distribution::bins);
            let (from, to) = (self.layers[from], self.layers[to]);
            // What the packet would have taken without tscap is less by its programs' time.
            let bound_ns = self.bound_from(from) + times.most_own_ns;
            Residence {
                from,
                to,
                figures: values
                    .and_then(Distribution::summary)
                    .map(|it| Figures::of(it, |_| Some(bound_ns))),
                own_programs: values.map(|it| OwnPrograms {
                    mean_ns: times.own_ns as f64 / it.n() as f64,
                    greatest_ns: times.most_own_ns,
                }),
                went_back: times.went_back,
                histogram: histogram.unwrap_or_default(),
            }
        });
        FlowResidences {
            name: flow.name.clone(),
            packets: flow.packets,
            in_cost_turns: flow.in_cost_turns,
            residences: residences.collect(),
        }
    }
}

impl Flow {
    fn new(name: String, spans: usize) -> Self {
        Self {
            name,
            packets: 0,
            in_cost_turns: 0,
            times: vec![Times::default(); spans],
        }
    }

    fn take(&mut self, passage: &Passage, layers: usize, is_timed: bool) {
        self.packets += 1;
        if !is_timed {
            self.in_cost_turns += 1;
            return;
        }
        for ((from, to), times) in spans(layers).zip(&mut self.times) {
            if let (Some(begin), Some(end)) = (passage.at(from), passage.at(to)) {
                let ns = end.0.wrapping_sub(begin.0).cast_signed();
                times.add(ns, passage.own_ns(from, to));
            }
        }
    }
}

impl Times {
    fn add(&mut self, ns: i64, own_ns: u64) {
        if ns < 0 {
            self.went_back += 1;
            return;
        }
        self.values.get_or_insert_with(Distribution::fixed).add(ns);
        self.own_ns += own_ns;
        self.most_own_ns = self.most_own_ns.max(own_ns);
    }
}

/// Which layers residences are between: each and the next one; if there are more than two, the
/// first and the last.
fn spans(layers: usize) -> impl Iterator<Item = (usize, usize)> {
    let next = (1..layers).map(|to| (to - 1, to));
    next.chain((layers > 2).then_some((0, layers - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::udp;
    use crate::layers::OwnTime;
    use tscap_clock::MonoNs;

    const LAYERS: [Layer; 3] = [Layer::Xdp, Layer::Tcx, Layer::App];

    fn passage(flow: u32, stamps: [Option<u64>; 3]) -> Passage {
        let mut passage = Passage::of(flow);
        for (layer, stamp) in stamps.into_iter().enumerate() {
            if let Some(stamp) = stamp {
                // Each program takes 7 ns.
                let own = OwnTime {
                    ring: 0,
                    before_ns: 7 * layer as u32,
                    run_ns: 7,
                };
                passage.see(layer, MonoNs(stamp), own);
            }
        }
        passage
    }

    #[test]
    fn each_flow_has_its_times_and_all_have_theirs() {
        let mut table = FlowTable::new(LAYERS.to_vec(), FlowBy::FiveTuple, false, 1);
        let frame = udp(5_004, &[1; 20]);
        let one = table.number(&frame, frame.len() as u32);
        assert_eq!(one, table.number(&frame, frame.len() as u32));
        // No room for another one, and no flow.
        let other = udp(5_005, &[1; 20]);
        assert_eq!(table.number(&other, other.len() as u32), OTHERS);
        assert_eq!(table.number(&[0; 14], 14), OTHERS);
        table.take(&passage(one, [Some(10), Some(40), Some(100)]), true);
        table.take(&passage(one, [Some(10), Some(60), None]), true);
        table.take(&passage(OTHERS, [Some(20), None, Some(10)]), true);
        table.take(&passage(OTHERS, [Some(20), Some(30), None]), false);
        let FlowReports { all, flows, others } = table.reports();
        let [flow] = &flows[..] else {
            panic!("{flows:?}")
        };
        let n = |of: &FlowResidences| -> Vec<_> {
            let figures = of.residences.iter().map(|it| it.figures);
            figures.map(|it| it.map_or(0, |it| it.n)).collect()
        };
        assert_eq!(
            (n(&all), n(flow), n(&others)),
            (vec![2, 1, 1], vec![2, 1, 1], vec![0; 3])
        );
        let first = flow.residences[0].figures.expect("two");
        assert_eq!(
            (first.min_ns, first.max_ns, first.bound_ns),
            (30, 50, Some(2 + 7)),
            "the programs' time is in the bound"
        );
        let own = |it: &Residence| it.own_programs.map(|it| (it.mean_ns, it.greatest_ns));
        assert_eq!(own(&flow.residences[0]), Some((7.0, 7)));
        assert_eq!(
            own(&flow.residences[2]),
            Some((14.0, 14)),
            "of two programs"
        );
        assert_eq!(own(&others.residences[1]), None);
        let whole = &flow.residences[2];
        assert_eq!((whole.from, whole.to), (Layer::Xdp, Layer::App));
        assert_eq!(whole.figures.expect("one").max_ns, 90);
        assert_eq!((others.packets, others.in_cost_turns), (2, 1));
        assert_eq!((others.residences[2].went_back, all.packets), (1, 4));
    }
}
