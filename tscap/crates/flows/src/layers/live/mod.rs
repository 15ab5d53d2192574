//! A measurement at layers while it runs.

mod cost;
mod hardware;
mod points;
mod sink;
pub mod switch;

use std::path::PathBuf;

use self::cost::{Costs, Turns};
use self::hardware::HardwareTimes;
use self::points::{Interface, LayerPoints};
use self::sink::LayerSink;
use super::schema::{FlowResidences, LayerReport, Method, MissingLayer};
use super::{FlowReports, FlowTable, Passages};
use crate::schema::FlowBy;
use tscap_base::failure::Failure;
use tscap_base::text::numbers::counted;
use tscap_capture::{ClockChoice, Event, PtpClocks};
use tscap_clock::{MonoNs, StampPath};
use tscap_file::accounting::Outcomes;
use tscap_network::namespaces::Target;
use tscap_programs::hook::{Layer, LayerPoint};
use tscap_session::{Draining, EndReason, Live, Machine, Recorded, Session, SessionPlan};

pub use sink::Latest;

/// A packet is looked for so long after it was first seen, ns.
const WINDOW_NS: u64 = 1_000_000_000;
/// Bytes of a packet that are kept: the headers by which flows are told.
const KEPT: u32 = 96;
/// The same, where packets in tunnels count.
const KEPT_INSIDE: u32 = 192;

/// A measurement at layers, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlan {
    /// The interface that receives the packets.
    pub interface: String,
    /// The network namespace that it is in; `None` for this process's own.
    pub namespace: Option<Target>,
    /// The layers, in their order, each once.
    pub layers: Vec<Layer>,
    /// The control group whose sockets count; `None` for the root of the hierarchy.
    pub cgroup: Option<PathBuf>,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// What a flow is.
    pub flow: FlowBy,
    /// Whether packets inside VXLAN and GRE are the ones that count.
    pub looks_inside: bool,
    /// Flows that the table holds at most; packets of others count together.
    pub max_flows: usize,
    /// So many are shown.
    pub top: usize,
}

/// A measurement with its programs attached. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Running {
    plan: LivePlan,
    interface: String,
    draining: Draining<LayerSink, LayerPoints>,
    ptp_clocks: PtpClocks,
    costs: Costs,
    turns: Turns,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveResult {
    /// How long packets were taken, s.
    pub seconds: f64,
    /// How it was done.
    pub method: Method,
    /// The layers.
    pub layers: Vec<LayerReport>,
    /// Those that could not be had.
    pub absent: Vec<MissingLayer>,
    /// All packets together.
    pub all: FlowResidences,
    /// The flows.
    pub flows: Vec<FlowResidences>,
    /// Packets of no flow in the table.
    pub others: FlowResidences,
    /// Whether each packet that the programs saw has an outcome.
    pub adds_up: bool,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl LivePlan {
    /// Checks this against the machine, loads the programs and attaches them.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(&self, on_event: &mut dyn FnMut(Event)) -> Result<Running, Failure> {
        let machine = Machine::check(ClockChoice::Ktime)?;
        let interface = Interface::find(self)?;
        let plan = SessionPlan {
            recorded: Recorded::Layers {
                kept: if self.looks_inside { KEPT_INSIDE } else { KEPT },
                have_processes: self.layers.contains(&Layer::App),
            },
            clock: ClockChoice::Ktime,
            tsc_path: None,
            reference: None,
            filter: None,
            interfaces: self.layers.len() as u32,
            ring_bytes: self.ring_bytes,
        };
        let session = Session::open(&machine, &plan, on_event).await?;
        let mut ptp_clocks = PtpClocks::default();
        let points =
            LayerPoints::attach(self, &interface, &session.loaded, &mut ptp_clocks).await?;
        match points.hardware {
            Some(_) => ptp_clocks.settle().await,
            // Its stamps can't be read.
            None => ptp_clocks.end(),
        }
        let turns = Turns::default();
        let costs = Costs::new(turns.clone(), points.all.len());
        let draining = session.drain(points, |points, beginning| {
            let measured = points.measured();
            let hardware = points.hardware.as_ref();
            let passages = Passages::new(measured.len(), WINDOW_NS);
            let flows = FlowTable::new(measured, self.flow, self.looks_inside, self.max_flows);
            LayerSink::new(
                beginning.rings,
                points.layers.clone(),
                (passages, flows),
                hardware.map(|it| HardwareTimes::by(&it.clock)),
                turns.clone(),
            )
        })?;
        Ok(Running {
            plan: self.clone(),
            interface: interface.label(),
            draining,
            ptp_clocks,
            costs,
            turns,
        })
    }
}

impl Live for Running {
    type Latest = Latest;

    fn warnings(&self) -> Vec<String> {
        warnings(self.draining.points())
    }

    fn ready(&self) -> String {
        let points = self.draining.points();
        let hardware = points.hardware.iter();
        let hardware = hardware.map(|it| (Layer::Hw, &it.hook));
        let points = points.all.iter().map(|it| (it.layer, &it.hook));
        let points = hardware.chain(points);
        let points: Vec<_> = points
            .map(|(layer, hook)| format!("{layer} ({hook})"))
            .collect();
        format!("{}: {}", self.interface, points.join(", "))
    }

    fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        self.draining.give_up_privileges(makes_files, on_event)
    }

    fn supervise(&mut self, on_event: &mut dyn FnMut(Event)) -> Option<EndReason> {
        self.costs.supervise(&self.draining.points().all);
        self.draining.supervise(None, on_event)
    }

    fn take_latest(&self) -> Option<Latest> {
        self.draining.take_latest()
    }
}

fn warnings(points: &LayerPoints) -> Vec<String> {
    let absent = points.absent.iter();
    let absent = absent.map(|it| format!("without the layer {}: {}", it.layer, it.why));
    let hardware = points.hardware.as_ref();
    let hardware = hardware.and_then(|it| it.warning.clone());
    absent.chain(hardware).collect()
}

impl Running {
    /// The layers that are measured.
    pub fn layers(&self) -> Vec<Layer> {
        self.draining.points().measured()
    }

    /// Ends: detaches, takes out what is left, and accounts for it.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn finish(mut self) -> Result<LiveResult, Failure> {
        let method = self.method();
        let seconds = self.draining.seconds();
        let points = &self.draining.points().all;
        self.costs.end(points);
        let end = MonoNs::now();
        let missed = points.iter().map(LayerPoint::run_counts);
        let missed: Vec<_> = missed.map(|it| it.map_or(0, |it| it.misses)).collect();
        let mut ended = self.draining.finish()?;
        self.ptp_clocks.end();
        let (losses, seen) = ended.losses(&ended.points.slots())?;
        let LayerSink {
            passages,
            mut flows,
            hardware,
            ..
        } = ended.sink;
        let take = &mut |passage: &_| flows.take(passage, self.turns.are_off_during(passage));
        let mut accounts = passages.finish(end, take);
        let programs = usize::from(hardware.is_some());
        if let Some(hardware) = &hardware {
            hardware.account(&mut accounts[0]);
        }
        let of_programs = accounts[programs..].iter_mut();
        for ((account, lost), missed) in of_programs.zip(&losses).zip(missed) {
            let counts = lost.entries().filter(|(_, count)| *count > 0);
            let counts = counts.map(|(entry, count)| (entry.name.to_owned(), count));
            account.unrecorded = counts.collect();
            account.seen = account.keyed + account.unkeyed + lost.total();
            account.missed = missed;
        }
        let accounted: u64 = accounts[programs..].iter().map(|it| it.seen).sum();
        let mut adds_up = seen == accounted && accounts.iter().all(|it| it.adds_up());
        if hardware.is_some() {
            // It is of the packets that the program at XDP has recorded.
            adds_up &= accounts[0].seen == accounts[1].keyed;
        }
        let mut warnings = warnings(&ended.points);
        let lost: u64 = losses.iter().map(Outcomes::lost).sum();
        warnings.extend((lost > 0).then(|| {
            let records = counted(lost, "sighting");
            format!(
                "{records} not recorded: those packets may seem to end at the layer before, or to \
                 be new at the next one (--ring-size)"
            )
        }));
        let merged: u64 = accounts
            .iter()
            .zip(&accounts[1..])
            .map(|(it, next)| it.merged(next))
            .sum();
        warnings.extend((merged > 0).then(|| {
            let packets = counted(merged, "packet");
            let interface = &self.plan.interface;
            format!(
                "{packets} became parts of aggregates, of which the residence is from there on: \
                 `ethtool -K {interface} gro off`"
            )
        }));
        let ambiguous = hardware.as_ref().map_or(0, HardwareTimes::ambiguous);
        warnings.extend((ambiguous > 0).then(|| {
            let stamps = counted(ambiguous, "hardware stamp");
            format!(
                "{stamps} got a time before the interface's clock was seen to be set: those \
                 residences have no bound"
            )
        }));
        let refused = self.costs.refused();
        warnings.extend(refused.map(|why| format!("what the programs cost is not known: {why}")));
        warnings.append(&mut ended.warnings);
        let mut accounts = accounts.into_iter();
        let hardware = ended.points.hardware.iter().zip(accounts.by_ref());
        let hardware: Vec<_> = hardware
            .map(|(it, account)| LayerReport {
                layer: Layer::Hw,
                hook: it.hook.clone(),
                account,
                cost: None,
            })
            .collect();
        let reports = ended.points.all.iter().zip(accounts);
        let reports = reports.zip(self.costs.of_layers());
        let reports = reports.map(|((point, account), cost)| LayerReport {
            layer: point.layer,
            hook: point.hook.clone(),
            account,
            cost,
        });
        let layers = hardware.into_iter().chain(reports).collect();
        let FlowReports { all, flows, others } = flows.reports();
        Ok(LiveResult {
            seconds,
            method,
            layers,
            absent: ended.points.absent,
            all,
            flows,
            others,
            adds_up,
            warnings,
        })
    }

    fn method(&self) -> Method {
        let plan = &self.plan;
        let memory = Passages::most_bytes() + FlowTable::most_bytes(plan.max_flows);
        Method {
            interface: self.interface.clone(),
            clock: StampPath::Ktime.function().to_owned(),
            flow: plan.flow,
            inner: plan.looks_inside,
            top: plan.top as u64,
            max_flows: plan.max_flows as u64,
            window_ns: WINDOW_NS,
            memory_bytes: memory as u64,
        }
    }
}
