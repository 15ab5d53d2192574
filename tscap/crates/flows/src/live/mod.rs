//! A measurement while it runs: the programs of a capture record the heads of packets, and a
//! thread of its own gives them to the flows.

mod drain;
mod points;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tscap_common::hook::ClockDomain;

use self::drain::{Drain, Drained, Shared, Shown};
use self::points::{Interfaces, Point, Points};
use super::schema::{Account, FlowReport, IntervalBasis, Place, Sort};
use super::{FlowOptions, Flows, PlaceClock};
use tscap_base::failure::{Context as _, Failure};
use tscap_capture::going_on::give_up_the_rest;
use tscap_capture::{ClockChoice, Counter, DirectionChoice, Event, Listener, check};
use tscap_clock::{HostClocks, RawStamp, StampPath};
use tscap_delay::live::{load_and_read, open_counter};
use tscap_file::accounting::{Direction, Outcomes};
use tscap_filter::Filter;
use tscap_host::{affinity, caps, system};
use tscap_network::bpf::wait_for_running_programs;
use tscap_network::namespaces::Target;
use tscap_programs::hook::{LoadOptions, Loaded, PROGRAMS, Presence, Shares};
use tscap_programs::ring::Consumer;
use tscap_streams::DelayBasis;
use tscap_time::timex::KernelClock;
use tscap_time::tsc;

pub use drain::Latest;

/// Bytes of a packet that are recorded: the headers of IPv6 in VXLAN over IPv6 with VLAN tags,
/// and those of TCP or RTP.
const SNAPLEN: u32 = 192;
/// The offset of each CPU's counter is checked this often.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// A live measurement, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlan {
    /// The interfaces.
    pub interfaces: Vec<String>,
    /// The network namespace that they are in; `None` for this process's own.
    pub namespace: Option<Target>,
    /// Which packets.
    pub direction: DirectionChoice,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// Only the packets that match.
    pub filter: Option<Filter>,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// What flows are.
    pub options: FlowOptions,
    /// Which ones come first.
    pub sort: Sort,
    /// So many are told each second, and have histogram and series at the end.
    pub top: usize,
    /// Most packets to see.
    pub count: Option<u64>,
}

/// A measurement with its programs attached. When it is dropped, nothing stays attached.
pub struct Running {
    plan: LivePlan,
    path: StampPath,
    loaded: Loaded,
    counter: Option<Counter>,
    points: Points,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Drained>>,
    checked: Instant,
    started: Instant,
}

/// Why a measurement ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// As many packets as asked for were seen.
    Count,
    /// An interface is gone, or its program.
    InterfaceGone,
    /// The blocks make no sense.
    Corrupt,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveResult {
    /// How long packets were taken, s.
    pub seconds: f64,
    /// What became of them.
    pub account: Account,
    /// Where they were stamped.
    pub places: Vec<Place>,
    /// The flows.
    pub flows: Vec<FlowReport>,
    /// Whether each packet that the programs saw has an outcome.
    pub adds_up: bool,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl LivePlan {
    /// Checks this against the machine, loads the programs, reads the clocks and attaches.
    /// `hear` is told what a user should know.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(&self, hear: &mut dyn FnMut(Event)) -> Result<Running, Failure> {
        check::check_privileges()?;
        check::check_kernel()?;
        let untrusted_tsc = tsc::check().err();
        let takes_tsc = untrusted_tsc.is_none();
        if self.clock == ClockChoice::Tsc {
            check::check_tsc(untrusted_tsc, false)?;
        }
        let interfaces = Interfaces::find(self)?;
        let ring_cpus = system::online_cpus().context("cannot list the online CPUs")?;
        let possible_cpus = system::possible_cpus().context("cannot count the possible CPUs")?;
        let ring_bytes = check::ring_bytes(self.ring_bytes, ring_cpus.len())?;
        let options = LoadOptions {
            object: PROGRAMS,
            program: "",
            clock: ClockDomain::Monotonic,
            kfunc: None,
            transmit: None,
            filter: self.filter.as_ref().map(|filter| &filter.program),
            interfaces: interfaces.count(),
            ring_bytes,
            ring_cpus: &ring_cpus,
            possible_cpus,
            snaplen: SNAPLEN,
            keep_raw: false,
            packet_flags: false,
            packet_queue: false,
            keys: None,
            ends_frames: false,
        };
        let (stamping, mut tracker) = load_and_read(self.clock, None, &options, takes_tsc).await?;
        let (mut loaded, path) = (stamping.loaded, stamping.path);
        let counter = open_counter(path, &ring_cpus, &mut loaded, &mut tracker)?;
        let told = &mut Listener::new(hear);
        counter.iter().for_each(|counter| counter.say(told));
        let offsets = counter.as_ref().map(Counter::offsets).unwrap_or_default();
        let rings = loaded.rings.take().expect("taken here only");
        let mut consumers = Consumer::all(rings);
        for (consumer, offset) in consumers.iter_mut().zip(offsets) {
            consumer.set_stamp_offset(offset);
        }
        let mut clocks = HostClocks::new(path.source());
        let cross = tracker.read(&mut clocks);
        tracker.observe(&cross);
        let start: RawStamp = tracker.stamp_at(&cross, cross.mono[1]);
        let points = Points::attach(self, &interfaces, &loaded).await?;
        let places = points.all.iter().map(|point| place_of(point, path));
        let (slots, places) = (points.slots(), places.collect());
        let shared = Arc::new(Shared::default());
        let shown = Shown {
            top: self.top,
            sort: self.sort,
        };
        let drain = Drain::new(
            consumers,
            (clocks, tracker),
            (&slots, places),
            (Flows::new(self.options.clone()), shown),
            Arc::clone(&shared),
            start,
        );
        let thread = spawn(drain)?;
        Ok(Running {
            plan: self.clone(),
            path,
            loaded,
            counter,
            points,
            shared,
            thread: Some(thread),
            checked: Instant::now(),
            started: Instant::now(),
        })
    }
}

fn spawn(drain: Drain) -> Result<JoinHandle<Drained>, Failure> {
    let cpus = affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
    let cpu = cpus.last().copied().unwrap_or_default();
    let thread = std::thread::Builder::new().name("tscap-flows".into());
    let thread = thread.spawn(move || {
        // Best effort: it works wherever it runs.
        let _ = affinity::pin_to(cpu);
        // Best effort too: it reads clocks and its own memory.
        let _ = caps::keep_only(&[]);
        drain.run()
    });
    thread.context("cannot start a thread")
}

/// Its bounds are those of the clock, once it is read.
fn place_of(point: &Point, path: StampPath) -> PlaceClock {
    let utc_bound_ns = KernelClock::read()
        .ok()
        .and_then(|clock| clock.utc_bound_ns());
    PlaceClock {
        place: Place {
            interface: Some(point.interface.clone()),
            sent: point.direction == Direction::Out,
            intervals: IntervalBasis {
                clock: path.function().to_owned(),
                step_ns: 1,
                ends_ns: None,
                rate_ppb: 0,
                unbounded: None,
            },
            delays: DelayBasis::Clocks {
                tai_offsets_s: Vec::new(),
                host_bound_ns: 0,
                utc_bound_ns,
                reference: None,
            },
        },
        counter: None,
    }
}

impl Running {
    /// What a reader must know before the figures.
    pub fn warnings(&self) -> Vec<String> {
        self.points.warnings()
    }

    /// Where packets are seen, for people.
    pub fn ready(&self) -> String {
        let points = self.points.all.iter();
        let points = points.map(|it| format!("{} ({})", it.interface, it.attachment.hook()));
        let points: Vec<_> = points.collect();
        format!(
            "{}, clock {} by {}",
            points.join(", "),
            self.path.source().name(),
            self.path.function()
        )
    }

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` at the end. Threads that run already keep theirs.
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
        give_up_the_rest(self.points.changes(), Vec::new(), makes_files, &reads, told)
    }

    /// The latest second, unless it was taken before.
    pub fn take_latest(&self) -> Option<Latest> {
        let latest = self.shared.latest.lock();
        latest.ok().and_then(|mut latest| latest.take())
    }

    /// Looks after interfaces and counters; to be called some times a second. Says why the
    /// measurement is over, if it is.
    pub fn look_after(&mut self, hear: &mut dyn FnMut(Event)) -> Option<Over> {
        if self.checked.elapsed() >= CHECK_EVERY {
            self.checked = Instant::now();
            if let Some(counter) = &mut self.counter
                && let Some(found) = counter.recheck(self.loaded.object(), &mut Listener::new(hear))
                && let Ok(mut place) = self.shared.recalibrated.lock()
            {
                *place = Some(found);
            }
        }
        let is_corrupt = self.shared.is_corrupt.load(Ordering::Relaxed);
        let seen = self.shared.seen.load(Ordering::Relaxed);
        let is_gone = |point: &Point| point.attachment.held.look() == Presence::Gone;
        match () {
            () if is_corrupt => Some(Over::Corrupt),
            () if self.plan.count.is_some_and(|most| seen >= most) => Some(Over::Count),
            () if self.points.all.iter().any(is_gone) => Some(Over::InterfaceGone),
            () => None,
        }
    }

    /// Ends: detaches, takes out what is left, and accounts for it.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn finish(mut self) -> Result<LiveResult, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        self.points.close();
        // Programs that are running may still record.
        wait_for_running_programs().context("cannot wait for the programs to end")?;
        self.shared.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is joined here only");
        thread.thread().unpark();
        let Drained { flows, clocks } = thread
            .join()
            .map_err(|_| Failure::new("the thread of the flows panicked: please report this"))?;
        let what = "cannot account for the packets";
        let counters = &self.loaded.counters;
        let slots = self.points.slots();
        let losses = counters.losses(&slots, &Shares::all()).context(what)?;
        let losses = losses.into_iter().next().unwrap_or_default();
        let seen = counters.seen().context(what)?.sum();
        let mut account = flows.account().clone();
        for (entry, count) in losses.iter().flat_map(Outcomes::entries) {
            account.note_unrecorded(entry.name, count);
        }
        let mut warnings = self.points.warnings();
        let lost: u64 = losses.iter().map(Outcomes::lost).sum();
        if lost > 0 {
            warnings.push(format!(
                "{lost} packets did not find room in the rings: packets that flows have lost may be \
                 among them (--ring-size)"
            ));
        }
        if let Ok(mut trouble) = self.shared.trouble.lock() {
            warnings.append(&mut trouble);
        }
        Ok(LiveResult {
            seconds,
            adds_up: account.seen == seen && account.adds_up(),
            flows: flows.reports(self.plan.top, self.plan.sort, &clocks),
            account,
            places: clocks.into_iter().map(|it| it.place).collect(),
            warnings,
        })
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
