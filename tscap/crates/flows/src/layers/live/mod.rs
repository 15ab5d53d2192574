//! A measurement at layers while it runs.

mod cost;
mod drain;
mod hardware;
mod points;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::task::yield_now;
use tscap_common::hook::{ClockDomain, Hook};
use tscap_common::key::KeyOf;

use self::cost::{Costs, Turns};
use self::drain::{Drain, Drained, Shared};
use self::hardware::HardwareTimes;
use self::points::{Interface, Points};
use super::schema::{Absent, FlowResidences, LayerReport, Method};
use super::{FlowTable, Passages};
use crate::schema::FlowBy;
use tscap_base::failure::{Context as _, Failure};
use tscap_base::text::numbers::counted;
use tscap_capture::going_on::give_up_the_rest;
use tscap_capture::{Event, Listener, PtpClocks, check};
use tscap_clock::{MonoNs, StampPath};
use tscap_file::accounting::Outcomes;
use tscap_host::caps::{self, Capability};
use tscap_host::{affinity, system};
use tscap_network::bpf::wait_for_running_programs;
use tscap_network::namespaces::Target;
use tscap_programs::hook::{Keys, LAYER_PROGRAMS, Layer, LayerPoint, LoadOptions, Loaded, Shares};
use tscap_programs::ring::Consumer;

pub use drain::Latest;

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
    /// Most flows.
    pub max_flows: usize,
    /// So many are shown.
    pub top: usize,
}

/// A measurement with its programs attached. When it is dropped, nothing stays attached.
pub struct Running {
    plan: LivePlan,
    interface: String,
    loaded: Loaded,
    points: Points,
    ptp_clocks: PtpClocks,
    costs: Costs,
    turns: Turns,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Drained>>,
    started: Instant,
}

/// Why a measurement ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The interface is gone, or a program from it.
    InterfaceGone,
    /// The records make no sense.
    Corrupt,
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
    pub absent: Vec<Absent>,
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
    pub async fn start(&self) -> Result<Running, Failure> {
        check::check_privileges()?;
        check::check_kernel()?;
        let interface = Interface::find(self)?;
        let mut producers = system::online_cpus().context("cannot list the online CPUs")?;
        let possible_cpus = system::possible_cpus().context("cannot count the possible CPUs")?;
        // Programs that run for processes have rings of their own.
        if self.layers.contains(&Layer::App) {
            let others: Vec<_> = producers.iter().map(|cpu| cpu + possible_cpus).collect();
            producers.extend(others);
        }
        let options = LoadOptions {
            object: LAYER_PROGRAMS,
            program: Hook::Xdp.program(ClockDomain::Monotonic),
            clock: ClockDomain::Monotonic,
            kfunc: None,
            transmit: None,
            filter: None,
            interfaces: self.layers.len() as u32,
            ring_bytes: check::ring_bytes(self.ring_bytes, producers.len())?,
            ring_cpus: &producers,
            possible_cpus: 2 * possible_cpus,
            snaplen: 0,
            keep_raw: false,
            packet_flags: false,
            packet_queue: false,
            keys: Some(Keys {
                of: KeyOf::Route,
                kept: match self.looks_inside {
                    true => KEPT_INSIDE,
                    false => KEPT,
                },
                process_producers: Some(possible_cpus),
            }),
            ends_frames: false,
        };
        let mut loaded =
            Loaded::load(&options).context("cannot load the programs of the layers")?;
        let rings = loaded.rings.take().expect("taken here only");
        yield_now().await;
        let mut ptp_clocks = PtpClocks::default();
        let points = Points::attach(self, &interface, &loaded, &mut ptp_clocks).await?;
        let hardware = points.hardware.as_ref();
        match hardware {
            Some(_) => ptp_clocks.settle().await,
            // Its stamps can't be read.
            None => ptp_clocks.end(),
        }
        let hardware = hardware.map(|it| HardwareTimes::by(&it.clock));
        let measured = points.measured();
        let passages = Passages::new(measured.len(), WINDOW_NS);
        let turns = Turns::default();
        let costs = Costs::new(turns.clone(), points.all.len());
        let flows = FlowTable::new(measured, self.flow, self.looks_inside, self.max_flows);
        let shared = Arc::new(Shared::default());
        let drain = Drain::new(
            Consumer::all(rings),
            points.layers.clone(),
            (passages, flows),
            hardware,
            turns.clone(),
            Arc::clone(&shared),
        );
        let thread = spawn(drain)?;
        Ok(Running {
            plan: self.clone(),
            interface: interface.label(),
            loaded,
            points,
            ptp_clocks,
            costs,
            turns,
            shared,
            thread: Some(thread),
            started: Instant::now(),
        })
    }
}

fn spawn(drain: Drain) -> Result<JoinHandle<Drained>, Failure> {
    let cpus = affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
    let cpu = cpus.last().copied().unwrap_or_default();
    let thread = std::thread::Builder::new().name("tscap-layers".into());
    let thread = thread.spawn(move || {
        // Best effort: it works wherever it runs.
        let _ = affinity::pin_to(cpu);
        // Best effort too: it reads clocks and its own memory.
        let _ = caps::keep_only(&[]);
        drain.run()
    });
    thread.context("cannot start a thread")
}

impl Running {
    /// What a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        let absent = self.points.absent.iter();
        let absent = absent.map(|it| format!("without the layer {}: {}", it.layer, it.why));
        let hardware = self.points.hardware.as_ref();
        let hardware = hardware.and_then(|it| it.warning.clone());
        absent.chain(hardware).collect()
    }

    /// Where packets are seen, for people.
    pub fn ready(&self) -> String {
        let hardware = self.points.hardware.iter();
        let hardware = hardware.map(|it| (Layer::Hw, &it.hook));
        let points = self.points.all.iter().map(|it| (it.layer, &it.hook));
        let points = hardware.chain(points);
        let points: Vec<_> = points
            .map(|(layer, hook)| format!("{layer} ({hook})"))
            .collect();
        format!("{}: {}", self.interface, points.join(", "))
    }

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` at the end. This thread keeps CAP_SYS_ADMIN, if it has
    /// it, for the kernel's statistics of what programs cost. Threads that run already keep
    /// theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(
        &mut self,
        makes_files: bool,
        hear: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        let counters = &self.loaded.counters;
        let told = &mut Listener::new(hear);
        let reads = || counters.seen().is_ok();
        let needed = vec![Capability::SysAdmin];
        give_up_the_rest(self.points.changes(), needed, makes_files, &reads, told)
    }

    /// The layers that are measured.
    pub fn layers(&self) -> Vec<Layer> {
        self.points.measured()
    }

    /// The latest second, unless it was taken before.
    pub fn take_latest(&self) -> Option<Latest> {
        let latest = self.shared.latest.lock();
        latest.ok().and_then(|mut latest| latest.take())
    }

    /// Looks after the programs; to be called some times a second. Says why the measurement is
    /// over, if it is.
    pub fn look_after(&mut self) -> Option<Over> {
        self.costs.look_after(&self.points.all);
        if self.shared.is_corrupt.load(Ordering::Relaxed) {
            return Some(Over::Corrupt);
        }
        let is_gone = self.points.all.iter().any(LayerPoint::is_gone);
        is_gone.then_some(Over::InterfaceGone)
    }

    /// Ends: detaches, takes out what is left, and accounts for it.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn finish(mut self) -> Result<LiveResult, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        self.costs.end(&self.points.all);
        let end = MonoNs::now();
        let missed = self.points.all.iter().map(LayerPoint::run_counts);
        let missed: Vec<_> = missed.map(|it| it.map_or(0, |it| it.misses)).collect();
        self.points.close();
        // Programs that are running may still record.
        wait_for_running_programs().context("cannot wait for the programs to end")?;
        self.ptp_clocks.end();
        self.shared.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is joined here only");
        thread.thread().unpark();
        let Drained {
            passages,
            mut flows,
            hardware,
        } = thread
            .join()
            .map_err(|_| Failure::new("the thread of the layers panicked: please report this"))?;
        let take = &mut |passage: &_| flows.take(passage, self.turns.are_off_during(passage));
        let mut accounts = passages.finish(end, take);
        let what = "cannot account for the packets";
        let counters = &self.loaded.counters;
        let losses = counters.losses(&self.points.slots(), &Shares::all());
        let losses = losses.context(what)?.into_iter().next().unwrap_or_default();
        let seen = counters.seen().context(what)?.sum();
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
        let mut warnings = self.warnings();
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
        if let Ok(mut trouble) = self.shared.trouble.lock() {
            warnings.append(&mut trouble);
        }
        let mut accounts = accounts.into_iter();
        let hardware = self.points.hardware.iter().zip(accounts.by_ref());
        let hardware: Vec<_> = hardware
            .map(|(it, account)| LayerReport {
                layer: Layer::Hw,
                hook: it.hook.clone(),
                account,
                cost: None,
            })
            .collect();
        let reports = self.points.all.iter().zip(accounts);
        let reports = reports.zip(self.costs.of_layers());
        let reports = reports.map(|((point, account), cost)| LayerReport {
            layer: point.layer,
            hook: point.hook.clone(),
            account,
            cost,
        });
        let layers = hardware.into_iter().chain(reports).collect();
        let (all, flows, others) = flows.reports();
        Ok(LiveResult {
            seconds,
            method: self.method(),
            layers,
            absent: std::mem::take(&mut self.points.absent),
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

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.points.close();
            self.shared.stop.store(true, Ordering::Release);
            thread.thread().unpark();
            // A panic there has been told already.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}
