//! A measurement while it runs: programs at both ends record keys of packets, and a thread of
//! its own matches them.

mod drain;
mod plan;
mod points;
mod privileges;
mod result;
mod scope;
mod way;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tscap_common::hook::ClockDomain;

use self::drain::{Drain, Drained, Role, Shared};
use self::points::{Interfaces, Points};
use self::way::WayState;
use crate::schema::Match;
use crate::{Latest, Matcher, MatcherOptions, Worst};
use tscap_base::failure::{Context as _, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::{
    ClockChoice, Counter, Event, Listener, Stamping, check, first_brackets, first_of, paths,
};
use tscap_clock::{HostClocks, StampPath, StampSource, Tracker, TscPath};
use tscap_host::perf::EventPriority;
use tscap_host::{affinity, caps, system};
use tscap_network::bpf::wait_for_running_programs;
use tscap_programs::hook::{KEY_PROGRAMS, Keys, LoadOptions, Loaded, Presence};
use tscap_programs::ring::Consumer;
use tscap_time::tsc;

pub use plan::{Course, LivePlan, OutPoint};
pub use points::not_attached;
pub use result::{Result as LiveResult, SlowPacket};
pub use scope::{open_namespace, visit};

/// The offset of each CPU's counter is checked this often.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// So long packets that are inside at the end may take to leave, at most.
const LONGEST_SETTLING: Duration = Duration::from_secs(2);
/// What helps where the programs are refused.
const TESTED_WITH: &str = "tscap delay is tested with Linux 6.1, 6.12 and 6.18. If this kernel \
     refuses its programs, capture both interfaces by `tscap capture --keep-raw`, and give the file to \
     `tscap delay --file`";
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A measurement with its programs attached. When it is dropped, nothing stays attached.
pub struct Running {
    plan: LivePlan,
    matched_by: Match,
    path: StampPath,
    loaded: Loaded,
    counter: Option<Counter>,
    points: Points,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Drained>>,
    memory_bytes: u64,
    checked: Instant,
    warnings: Vec<String>,
    started: Instant,
}

/// Why a measurement ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// As many packets as asked for were matched.
    Count,
    /// An interface is gone, or its program.
    InterfaceGone,
    /// The records make no sense.
    Corrupt,
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
        let matched_by = self.matched_by.unwrap_or(interfaces.suitable_match());
        let ring_cpus = system::online_cpus().context("cannot list the online CPUs")?;
        let possible_cpus = system::possible_cpus().context("cannot count the possible CPUs")?;
        let ring_bytes = check::ring_bytes(self.ring_bytes, ring_cpus.len())?;
        let options = LoadOptions {
            object: KEY_PROGRAMS,
            program: "",
            clock: ClockDomain::Monotonic,
            kfunc: None,
            transmit: None,
            filter: None,
            interfaces: interfaces.most_points(),
            ring_bytes,
            ring_cpus: &ring_cpus,
            possible_cpus,
            snaplen: 0,
            keep_raw: false,
            packet_flags: false,
            packet_queue: false,
            keys: Some(Keys {
                of: matched_by.key_of(),
                kept: self.kept_bytes() as u32,
                process_producers: None,
            }),
            ends_frames: false,
        };
        let (clock, tsc_path) = self.clock_at_its_points();
        let loaded = load_and_read(clock, tsc_path, &options, takes_tsc).await;
        let (stamping, mut tracker) = loaded.map_err(refused)?;
        let Stamping {
            mut loaded, path, ..
        } = stamping;
        let counter = open_counter(path, &ring_cpus, &mut loaded, &mut tracker)?;
        counter
            .iter()
            .for_each(|counter| counter.say(&mut Listener::new(hear)));
        let offsets = counter.as_ref().map(Counter::offsets).unwrap_or_default();
        let rings = loaded.rings.take().expect("taken here only");
        let mut consumers = Consumer::all(rings);
        for (consumer, offset) in consumers.iter_mut().zip(offsets) {
            consumer.set_stamp_offset(offset);
        }

        let points = Points::attach(self, &interfaces, &loaded).await?;
        let mut clocks = HostClocks::new(path.source());
        let cross = tracker.read(&mut clocks);
        tracker.observe(&cross);
        // After attaching: a packet that leaves within a window from here may have entered
        // before.
        let start = tracker.stamp_at(&cross, cross.mono[1]);
        let mut memory_bytes = 0;
        let is_mirrored = matches!(self.course, Course::Mirrored { .. });
        let ways = interfaces.exits().map(|exits| {
            let exits = if is_mirrored { 1 } else { exits };
            let matcher = Matcher::new(MatcherOptions {
                window: window_of(self.window, &tracker),
                capacity: self.capacity,
                exits,
                is_mirrored,
                kept_bytes: self.kept_bytes(),
                keeps_exits: self.keeps_packets,
                start,
            });
            memory_bytes += matcher.memory_bytes();
            let worst = self.keeps_packets.then(Worst::default);
            WayState::new(matcher, exits, start, worst)
        });
        let ways = ways.collect();
        let roles = points.all.iter().map(|point| Role {
            slot: point.slot,
            way: point.way,
            at: point.at,
        });
        let roles: Vec<_> = roles.collect();
        let shared = Arc::new(Shared::default());
        let drain = Drain::new(
            (consumers, ring_cpus),
            (clocks, tracker),
            &roles,
            ways,
            Arc::clone(&shared),
        );
        let thread = spawn(drain)?;
        Ok(Running {
            plan: self.clone(),
            matched_by,
            path,
            loaded,
            counter,
            warnings: points.warnings(),
            points,
            shared,
            thread: Some(thread),
            memory_bytes,
            checked: Instant::now(),
            started: Instant::now(),
        })
    }
}

/// Loads programs by the best path to the clock; by another clock where the TSC can't be read
/// and nobody has asked for it.
///
/// # Errors
/// If they can't be loaded, or the clock can't be read.
pub async fn load_and_read(
    clock: ClockChoice,
    tsc_path: Option<TscPath>,
    options: &LoadOptions<'_>,
    mut takes_tsc: bool,
) -> Result<(Stamping, Tracker), Failure> {
    loop {
        let paths = paths(clock, tsc_path, takes_tsc);
        let stamping = first_of(&paths, options, &KernelFiles::live())?;
        let source = stamping.path.source();
        match first_brackets(source, &mut HostClocks::new(source)).await {
            Err(_) if clock == ClockChoice::Auto && source == StampSource::Tsc => {
                takes_tsc = false;
            }
            tracker => return Ok((stamping, tracker?)),
        }
    }
}

/// Without the verifier's log, where it has refused the programs.
fn refused(failure: Failure) -> Failure {
    let why = failure.chain();
    match why.split_once("Verifier output") {
        None => failure,
        Some((why, _)) => {
            Failure::new(why.trim_end().trim_end_matches('.').to_owned()).hint(TESTED_WITH)
        }
    }
}

/// Opens the counter of each CPU, where stamps are of one.
pub fn open_counter(
    path: StampPath,
    ring_cpus: &[u32],
    loaded: &mut Loaded,
    tracker: &mut Tracker,
) -> Result<Option<Counter>, Failure> {
    let is_perf = path == StampPath::Tsc(TscPath::Perf);
    is_perf
        .then(|| Counter::open(ring_cpus, EventPriority::Pinned, loaded.object(), tracker))
        .transpose()
}

/// A window in the unit of the stamps.
fn window_of(window: Duration, tracker: &Tracker) -> u64 {
    let ns = i64::try_from(window.as_nanos()).unwrap_or(i64::MAX);
    let units = match tracker.counter() {
        Some(counter) => counter.rate().cycles_in(ns),
        None => ns,
    };
    units.max(0).unsigned_abs()
}

fn spawn(drain: Drain) -> Result<JoinHandle<Drained>, Failure> {
    let cpus = affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
    let cpu = cpus.last().copied().unwrap_or_default();
    let thread = std::thread::Builder::new().name("tscap-matcher".into());
    let thread = thread.spawn(move || {
        // Best effort: it matches wherever it runs.
        let _ = affinity::pin_to(cpu);
        // Best effort too: it reads clocks and its own memory.
        let _ = caps::keep_only(&[]);
        drain.run()
    });
    thread.context("cannot start a thread")
}

impl Running {
    /// What a reader must know before the figures.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
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

    /// Names of the ways.
    pub fn ways(&self) -> &[String] {
        &self.points.ways
    }

    /// Of each way and exit the figures of the latest second, and how many packets are
    /// remembered.
    pub fn latest(&self) -> (Vec<Vec<Option<Latest>>>, u64) {
        let latest = self.shared.latest.lock().map(|it| it.clone());
        let open = self.shared.open.load(Ordering::Relaxed);
        (latest.unwrap_or_default(), open)
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
        let matched = self.shared.matched.load(Ordering::Relaxed);
        let is_gone = |point: &points::Point| point.attachment.held.look() == Presence::Gone;
        match () {
            () if is_corrupt => Some(Over::Corrupt),
            () if self.plan.count.is_some_and(|most| matched >= most) => Some(Over::Count),
            () if self.points.all.iter().any(is_gone) => Some(Over::InterfaceGone),
            () => None,
        }
    }

    /// Ends: no more packets enter, those inside leave for as long as a window, at most 2 s,
    /// and all is judged. `hurry` ends the waiting.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub async fn finish(mut self, hurry: impl Future<Output = ()>) -> Result<LiveResult, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        self.points.close_entries();
        let until = tokio::time::Instant::now() + self.plan.window.min(LONGEST_SETTLING);
        tokio::select! {
            () = self.settle(until) => {}
            () = hurry => {}
        }
        self.points.close();
        // Programs that are running may still record.
        wait_for_running_programs().context("cannot wait for the programs to end")?;
        self.shared.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is joined here only");
        thread.thread().unpark();
        let drained = thread
            .join()
            .map_err(|_| Failure::new("the matcher panicked: please report this"))?;
        result::of(self, drained, seconds)
    }

    /// Until nothing is inside, or `until`.
    async fn settle(&self, until: tokio::time::Instant) {
        let mut last = u64::MAX;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
            let matched = self.shared.matched.load(Ordering::Relaxed);
            if self.shared.open.load(Ordering::Relaxed) == 0 && matched == last {
                return;
            }
            last = matched;
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
