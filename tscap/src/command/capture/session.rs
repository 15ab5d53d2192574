//! A capture from start to end: what ends it, and the accounting.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use tokio::time::MissedTickBehavior;

use super::console::{self, Progress, Ready, ReadyInterface};
use super::files::{Files, not_intact};
use super::finish::finish;
use super::first_brackets::first_brackets;
use super::load;
use super::opened::{self, Opened};
use super::prepare::{self, Machine};
use super::start::{self, Running};
use super::summary::{Stop, Summary};
use super::{Exit, Failure, Programs};
use super::{commands, earlier, pinning};
use crate::capturing::accounting::Observed;
use crate::capturing::clock::{HostClocks, RealNs, StampSource};
use crate::capturing::engine::{CloseError, Event, Names, RotationPlan};
use crate::capturing::host::timex::{ClockSetWatch, KernelClock};
use crate::cli::{CapturePlan, ClockChoice, Target};
use crate::command::Hint;
use crate::command::console::Console;
use crate::command::signals::Signals;

/// How often the interfaces are looked after.
const LINKS_EVERY: Duration = Duration::from_millis(200);
/// How often progress is said and the counters are read for the file.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How often the reader of a named pipe is looked for.
const READER_EVERY: Duration = Duration::from_millis(50);
/// How often the offset of each CPU's counter is checked again. It takes a third
/// of a millisecond on each CPU.
const COUNTER_EVERY: Duration = Duration::from_secs(10);

/// Runs the whole capture.
pub(super) async fn run(
    plan: &CapturePlan,
    programs: &Programs<'_>,
) -> Result<(Exit, Option<Summary>), Failure> {
    let mut console = console::of(plan).trying("cannot start a thread")?;
    // First of all, so that no signal finds the machine half changed.
    let mut signals = Signals::new()?;
    let mut machine = prepare::check(plan, programs.ring_cpus.clone())?;
    pinning::check(plan, &machine, &mut console)?;
    warn_of_name(&plan.target, &mut console);
    let opened = match (&plan.rotation, &plan.target) {
        (Some(rotation), Target::Path(path)) => {
            Some(open_first(rotation, path, RealNs::now(), &mut console)?)
        }
        _ => open(plan, &mut signals, &mut console).await?,
    };
    let Some(opened) = opened else {
        return Ok((Exit::Success, None));
    };
    let (stamping, tracker) = loop {
        let stamping = load::load(plan, programs, &machine, &mut console)?;
        let source = stamping.path.source();
        let mut clocks = HostClocks::new(source);
        match first_brackets(source, &mut clocks, signals.next()).await {
            // Nobody has asked for it.
            Err(failure) if plan.clock == ClockChoice::Auto && source == StampSource::Tsc => {
                console.note(&format!("no stamps by the TSC: {}", failure.chain()));
                machine.takes_tsc = false;
            }
            tracker => break (stamping, tracker?),
        }
    };
    let Some(tracker) = tracker else {
        return Ok((Exit::Success, None));
    };
    let turn = tokio::select! {
        turn = earlier::turn(plan, &mut console) => turn?,
        () = signals.next() => return Ok((Exit::Success, None)),
    };
    earlier::look_at_journals(plan, &machine.interfaces, &mut console)?;
    let mut running = start::start(plan, &machine, stamping, opened, tracker, &mut console)?;
    drop(turn);

    let is_up = tokio::select! {
        () = start::wait_for_links(&machine.interfaces, &mut console) => true,
        () = signals.next() => false,
    };
    if !is_up {
        return finish(plan, running, Stop::Signal, &mut signals, &mut console).await;
    }
    observe(plan, &running)?;
    console::ready(&mut console, &readiness(plan, &running, &machine));
    let stop = match watch(plan, &mut running, &mut signals, &mut console).await {
        Ok(stop) => stop,
        // What has been captured is worth finishing all the same.
        Err(failure) => {
            console.error(&failure.to_string());
            Stop::InternalError
        }
    };
    finish(plan, running, stop, &mut signals, &mut console).await
}

/// Warns of a name that promises another format.
fn warn_of_name(target: &Target, console: &mut Console) {
    let Target::Path(path) = target else {
        return;
    };
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| ["pcap", "cap"].contains(&ending)) {
        let path = path.display();
        console.warning(&format!("tscap writes pcapng: {path} will not be pcap"));
    }
}

/// Opens the first of several files, before the capture's own start is known.
fn open_first(
    plan: &RotationPlan,
    template: &Path,
    now: RealNs,
    console: &mut Console,
) -> Result<Opened, Failure> {
    if let Some(program) = &plan.command {
        commands::check(program)?;
    }
    let mut names = Names::new(template, plan.naming, TimeZone::system());
    if names.are_all_one() {
        console.note("all files have the same name: each takes the place of the one before");
    }
    Ok(Opened::First(opened::open_first(&mut names, now)?, names))
}

/// Opens the output; waits for the reader of a named pipe. `None` if a signal
/// comes first.
async fn open(
    plan: &CapturePlan,
    signals: &mut Signals,
    console: &mut Console,
) -> Result<Option<Opened>, Failure> {
    let mut is_told = false;
    loop {
        if let Some(opened) = opened::open(&plan.target)? {
            return Ok(Some(opened));
        }
        if !is_told {
            console.note(&format!("waiting for a reader of {}", plan.target));
            is_told = true;
        }
        tokio::select! {
            () = tokio::time::sleep(READER_EVERY) => {}
            () = signals.next() => return Ok(None),
        }
    }
}

fn readiness(plan: &CapturePlan, running: &Running, machine: &Machine) -> Ready {
    let interfaces = running.links.0.iter().map(|live| ReadyInterface {
        name: live.name.clone(),
        ifindex: live.ifindex(),
        xdp_mode: live.mode,
    });
    Ready {
        interfaces: interfaces.collect(),
        clock: running.path.source(),
        path: running.path.function(),
        ordered: running.path.is_ordered(),
        host_bound_ns: running.shared.host_bound_ns.load(Ordering::Relaxed),
        rings: machine.ring_cpus.len(),
        ring_bytes: machine.ring_bytes,
        converter_cpu: machine.converter_cpu,
        rx_cpus: plan.rx_cpus.clone(),
    }
}

/// Reads what goes into the statistics blocks.
pub(super) fn observe(plan: &CapturePlan, running: &Running) -> Result<Observed, Failure> {
    let interfaces = running.links.counts(&running.loaded.counters);
    let off_cpu = plan
        .rx_cpus
        .as_deref()
        .map(|cpus| running.loaded.counters.seen_off(cpus))
        .transpose();
    let observed = Observed {
        interfaces: interfaces.trying("cannot account for the frames")?,
        utc_bound_ns: KernelClock::read()
            .ok()
            .filter(|clock| clock.synchronised)
            .map(|clock| clock.max_error_ns),
        off_cpu: off_cpu.trying("cannot account for the frames")?,
    };
    if let Ok(mut shared) = running.shared.observed.lock() {
        shared.clone_from(&observed);
    }
    Ok(observed)
}

/// Has the converter go on by the offsets of the CPUs' counters as they are now.
pub(super) fn recheck_counter(running: &mut Running, console: &mut Console) {
    if let Some(counter) = &mut running.counter
        && let Some(found) = counter.recheck(&mut running.loaded, console)
        && let Ok(mut shared) = running.shared.recalibrated.lock()
    {
        *shared = Some(found);
    }
}

/// Waits for whatever ends the capture.
async fn watch(
    plan: &CapturePlan,
    running: &mut Running,
    signals: &mut Signals,
    console: &mut Console,
) -> Result<Stop, Failure> {
    let clock_set = ClockSetWatch::new()
        .and_then(ClockSetWatch::register)
        .trying("cannot watch the system clock for steps")?;
    let mut links = tokio::time::interval(LINKS_EVERY);
    links.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut progress = tokio::time::interval(PROGRESS_EVERY);
    progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
    progress.tick().await;
    let deadline = plan.duration.map(|duration| running.started + duration);
    let deadline = async {
        match deadline {
            Some(at) => tokio::time::sleep_until(at.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline);
    let mut counter = tokio::time::interval(COUNTER_EVERY);
    counter.set_missed_tick_behavior(MissedTickBehavior::Delay);
    counter.tick().await;
    let mut rate = Rate::new(running.started);

    loop {
        tokio::select! {
            () = signals.next() => return Ok(Stop::Signal),
            () = &mut deadline => return Ok(Stop::Duration),
            event = running.events.recv() => match event {
                Some(event) => if let Some(stop) = heed(plan, event, &mut running.files, console) {
                    return Ok(stop);
                },
                None => return Ok(Stop::InternalError),
            },
            Some(ended) = running.files.command_ended() => console::command_ended(console, &ended),
            _ = links.tick() => {
                for gone in running.links.look_after(&mut running.loaded.counters) {
                    console.error(&format!("interface {} is gone", gone.name));
                }
                if running.links.all_gone() {
                    return Ok(Stop::InterfaceGone);
                }
                if let Some((one, other)) = running.links.collision() {
                    console.error(&format!(
                        "{one} and {other} now have the same number in two namespaces: their \
                         frames can't be told apart"
                    ));
                    return Ok(Stop::InternalError);
                }
            }
            _ = progress.tick() => {
                let observed = observe(plan, running)?;
                console::progress(console, &rate.progress(running, &observed)?);
            }
            _ = counter.tick() => recheck_counter(running, console),
            ready = clock_set.readable() => {
                let mut ready = ready.trying("cannot watch the system clock for steps")?;
                ready.clear_ready();
                // Look at the clock now: the shorter the time between two
                // cross-timestamps, the fewer stamps are ambiguous.
                if ready.get_inner().was_set().unwrap_or(false) {
                    running.converter.thread().unpark();
                }
            }
        }
    }
}

/// Says what the converter has to say; gives the reason if it ends the capture.
pub(super) fn heed(
    plan: &CapturePlan,
    event: Event,
    files: &mut Files,
    console: &mut Console,
) -> Option<Stop> {
    match event {
        Event::CountReached => Some(Stop::Count),
        Event::PeriodsOver => Some(Stop::Files),
        Event::FileClosed { file, error } => {
            if let Some(error) = &error {
                console.error(&not_intact(&file.path.display(), error));
            }
            let stops = matches!(error, Some(CloseError::Io(_)));
            files.closed(file, error.is_none(), console);
            stops.then_some(Stop::WriteError)
        }
        Event::FileRemoved { path, frames } => {
            files.removed(&path, frames, console);
            None
        }
        Event::NotRemoved { path, error } => {
            console.warning(&format!("cannot remove {}: {error}", path.display()));
            None
        }
        Event::NextFileFailed { path, error } => {
            console.error(&format!(
                "cannot begin the next file, {}: {error}\n\
                 hint: the files so far are complete; give -w a place that stays writable",
                path.display()
            ));
            Some(Stop::WriteError)
        }
        Event::ReaderGone => Some(Stop::ReaderGone),
        Event::WriteFailed { path, error } => {
            let target = path.map_or_else(|| plan.target.clone(), Target::Path);
            console.error(&format!(
                "cannot write to {target}: {error}\n\
                 hint: make room, or give -w another place; the file ends with its last whole frame"
            ));
            Some(Stop::WriteError)
        }
        Event::Corrupt(corrupt) => {
            console.error(&format!("{corrupt}: please report this"));
            Some(Stop::InternalError)
        }
        Event::Stepped { step_ns, cause } => {
            console::stepped(console, step_ns, cause);
            None
        }
        Event::CounterJumped { jump_ns } => {
            console::counter_jumped(console, jump_ns);
            None
        }
    }
}

/// The rate since the last progress.
struct Rate {
    started: Instant,
    latest: Instant,
    written: u64,
}

impl Rate {
    fn new(started: Instant) -> Self {
        Self {
            started,
            latest: started,
            written: 0,
        }
    }

    fn progress(&mut self, running: &Running, observed: &Observed) -> Result<Progress, Failure> {
        let now = Instant::now();
        let shared = &running.shared;
        let written = shared.written.load(Ordering::Relaxed);
        let since = now.duration_since(self.latest).as_secs_f64();
        let peak = shared.peak_fill.swap(0, Ordering::Relaxed);
        let other = running.loaded.counters.other_losses();
        let lost = observed
            .interfaces
            .iter()
            .map(|counts| counts.losses.lost());
        let progress = Progress {
            seconds: now.duration_since(self.started).as_secs_f64(),
            seen: running
                .loaded
                .counters
                .seen()
                .trying("cannot account for the frames")?,
            written,
            bytes: shared.bytes.load(Ordering::Relaxed),
            drops: lost.sum::<u64>() + other.map_or(0, |losses| losses.lost()),
            rate: (written - self.written) as f64 / since.max(1e-9),
            ring_fill: peak as f64 / shared.ring_bytes.load(Ordering::Relaxed).max(1) as f64,
            host_bound_ns: shared.host_bound_ns.load(Ordering::Relaxed),
        };
        self.latest = now;
        self.written = written;
        Ok(progress)
    }
}
