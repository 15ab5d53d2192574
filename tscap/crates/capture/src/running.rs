//! A capture while it runs: what is looked after, and what is told of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::attach::Attaching;
use super::check::Machine;
use super::counter::Counter;
use super::event::{Event, Reporter};
use super::files::{Files, not_intact};
use super::joining::Joining;
use super::link_up::wait_for_links;
use super::live_link::Loss;
use super::live_links::LiveLinks;
use super::plan::{Capture, Target};
use super::pulse::Pulse;
use super::state::{Account, Progress, Ready, ReadyInterface, ReadyWriter};
use super::summary::{FilterSummary, Stop};
use super::writers::Writers;
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::StampPath;
use tscap_engine::{self as engine, CloseError};
use tscap_file::accounting::{Direction, Observed};
use tscap_host::readable::Readable;
use tscap_programs::hook::Loaded;
use tscap_time::timex::{ClockSetWatch, KernelClock};

/// How often the interfaces are looked after.
const LINKS_EVERY: Duration = Duration::from_millis(200);
/// How often progress is told and the counters are read for the file.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// A capture with its programs attached. When it is dropped the programs are detached and
/// the machine's settings given back, but the file may lack its end: [`Self::finish`].
pub struct Running {
    pub(super) parts: Parts,
    pub(super) started: Instant,
    clock_set: Readable<ClockSetWatch>,
    links_due: Interval,
    progress_due: Interval,
    counter_due: Interval,
    /// At the latest progress: when that was, and frames written by then.
    latest: (Instant, u64),
    /// What has happened and was not told yet.
    pub(super) events: VecDeque<Event>,
}

pub(super) struct Parts {
    pub plan: Capture,
    pub machine: Machine,
    pub loaded: Loaded,
    pub path: StampPath,
    pub links: LiveLinks,
    pub writers: Writers,
    pub events: UnboundedReceiver<engine::Event>,
    pub files: Files,
    /// For TSC stamps by perf events: the events and what is known of them.
    pub counter: Option<Counter>,
    /// What attaches programs; until all that it has changed is given back.
    pub attaching: Option<Attaching>,
    pub joining: Joining,
    /// The process that gives settings back has ended, and that was told.
    pub is_keeper_lost: bool,
}

impl Running {
    pub(super) fn new(parts: Parts, clock_set: Readable<ClockSetWatch>) -> Self {
        let started = Instant::now();
        let statistics_every = parts.plan.statistics_every;
        Self {
            parts,
            started,
            clock_set,
            links_due: every(LINKS_EVERY),
            progress_due: every(PROGRESS_EVERY),
            counter_due: every(statistics_every),
            latest: (started, 0),
            events: VecDeque::new(),
        }
    }

    /// Waits until every link that had carrier before has it again, at most 10 s, and
    /// tells what the capture is like.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub async fn ready(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<Ready, Failure> {
        let reporter = &mut Reporter::new(on_event);
        wait_for_links(&self.parts.machine, &self.parts.links, reporter).await;
        self.parts.observe()?;
        let Parts {
            plan,
            machine,
            path,
            links,
            writers,
            ..
        } = &self.parts;
        let first = &writers.each[0];
        Ok(Ready {
            interfaces: links.0.iter().map(ReadyInterface::of).collect(),
            clock: path.source(),
            path: path.function(),
            ordered: path.is_ordered(),
            host_bound_ns: writers.host_bound_ns(),
            reference: plan.reference.as_ref().map(|it| it.name().to_owned()),
            tap: plan.tap.is_some(),
            filter: plan.filter.as_ref().map(FilterSummary::of),
            rings: machine.ring_cpus.len(),
            ring_bytes: machine.ring_bytes,
            io: first.io,
            converter_cpu: first.cpu,
            priority: plan.priority,
            writers: ReadyWriter::all(writers),
            rx_cpus: plan.rx_cpus.clone(),
        })
    }

    /// Hears events until there is a reason to end.
    ///
    /// # Errors
    /// As [`Self::next_event`].
    pub async fn until_stopped(
        &mut self,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Stop, Failure> {
        loop {
            match self.next_event().await? {
                Event::Stopped(stop) => return Ok(stop),
                event => on_event(event),
            }
        }
    }

    /// Looks after the capture until there is something to tell: progress each second. Safe
    /// to cancel.
    ///
    /// # Errors
    /// If the counters can't be read or the clock not be watched. [`Self::finish`] still
    /// keeps what has been captured.
    pub async fn next_event(&mut self) -> Result<Event, Failure> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            self.supervise().await?;
        }
    }

    /// Waits for one thing that is due, and does it. Safe to cancel.
    async fn supervise(&mut self) -> Result<(), Failure> {
        let deadline = self.parts.plan.duration.map(|time| self.started + time);
        let deadline = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let Self {
            parts,
            events,
            clock_set,
            links_due,
            progress_due,
            counter_due,
            ..
        } = self;
        let mut on_event = |event| events.push_back(event);
        let reporter = &mut Reporter::new(&mut on_event);
        tokio::select! {
            () = deadline => reporter.tell(Event::Stopped(Stop::Duration)),
            event = parts.events.recv() => match event {
                Some(event) => if let Some(stop) = parts.take(event, reporter) {
                    reporter.tell(Event::Stopped(stop));
                },
                None => reporter.tell(Event::Stopped(Stop::InternalError)),
            },
            Some(ended) = parts.files.command_ended() => ended.tell(reporter),
            _ = links_due.tick() => parts.supervise_links(reporter),
            news = parts.joining.news() => parts.observe_scope(news, reporter)?,
            _ = counter_due.tick() => parts.recheck_counter(reporter),
            _ = progress_due.tick() => {
                let progress = self.progress()?;
                self.events.push_back(Event::Progress(progress));
            }
            ready = clock_set.wait() => {
                ready.context("cannot watch the system clock for steps")?;
                // Look at the clock now: the shorter the time between two
                // cross-timestamps, the fewer stamps are ambiguous.
                if clock_set.get().was_set().unwrap_or(false) {
                    parts.writers.wake();
                }
            }
        }
        Ok(())
    }

    /// The counters now; rate and fill are since the last call. They go into the file's
    /// next statistics.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn progress(&mut self) -> Result<Progress, Failure> {
        // What has an outcome before what was seen, so that it is never more.
        let counts = self.parts.writers.counts();
        let observed = Observed::of_all(&self.parts.observe()?);
        let (
            now,
            Parts {
                writers, loaded, ..
            },
        ) = (Instant::now(), &self.parts);
        let written = writers.written();
        let (latest, written_then) = std::mem::replace(&mut self.latest, (now, written));
        let since = now.duration_since(latest).as_secs_f64();
        let lost = observed.interfaces.iter().map(|it| it.losses.sum().lost());
        let seen = loaded.counters.seen();
        let seen = seen.context("cannot account for the frames")?;
        Ok(Progress {
            seconds: now.duration_since(self.started).as_secs_f64(),
            seen: seen.sum(),
            written,
            bytes: writers.bytes(),
            drops: lost.sum(),
            rate: (written - written_then) as f64 / since.max(1e-9),
            ring_fill: writers.take_ring_fill(),
            host_bound_ns: writers.host_bound_ns(),
            tap: self.parts.plan.tap.is_some(),
            account: Account {
                seen,
                interfaces: self.parts.links.accounts(&observed, &counts),
                utc_bound_ns: observed.utc_bound_ns,
            },
        })
    }

    /// Has everything written that was captured before now, and the next file begun where there
    /// are several: [`Event::Flushed`] tells when that is done.
    pub fn begin_next_file(&self) {
        self.parts.writers.request_next_file();
    }

    /// Whether its converters get on.
    pub fn pulse(&self) -> Pulse {
        Pulse::of(&self.parts.writers)
    }
}

impl Parts {
    /// Reads what goes into the statistics blocks of each writer.
    pub fn observe(&self) -> Result<Vec<Observed>, Failure> {
        let counters = &self.loaded.counters;
        let rx_cpus = self.plan.rx_cpus.as_deref();
        let off_cpu = rx_cpus.map(|cpus| counters.seen_outside(cpus)).transpose();
        let off_cpu = off_cpu.context("cannot account for the frames")?;
        let clock = KernelClock::read().ok();
        let clock = clock.filter(|clock| clock.synchronised);
        let interfaces = self.links.counts(counters, &self.writers.shares);
        let interfaces = interfaces.context("cannot account for the frames")?;
        let observed = interfaces.into_iter().map(|interfaces| Observed {
            interfaces,
            utc_bound_ns: match &self.plan.reference {
                Some(followed) => followed.known().bounds().utc_ns(),
                None => clock.map(|clock| clock.max_error_ns),
            },
            off_cpu: off_cpu.map(|seen| seen[Direction::In]),
        });
        let observed: Vec<_> = observed.collect();
        for (writer, observed) in self.writers.each.iter().zip(&observed) {
            if let Ok(mut shared) = writer.shared.observed.lock() {
                shared.clone_from(observed);
            }
        }
        Ok(observed)
    }

    /// Has the converter go on by the offsets of the CPUs' counters as they are now.
    pub fn recheck_counter(&mut self, reporter: &mut Reporter<'_>) {
        if let Some(counter) = &mut self.counter
            && let Some(found) = counter.recheck(self.loaded.object(), reporter)
        {
            self.writers.recalibrate(&found);
        }
    }

    fn supervise_links(&mut self, reporter: &mut Reporter<'_>) {
        self.supervise_keeper(reporter);
        self.follow_others(reporter);
        for (live, loss) in self.links.supervise() {
            let name = live.whole_name();
            match loss {
                Loss::Interface if live.is_named => {
                    reporter.error(&format!("interface {name} is gone"));
                }
                Loss::Interface => reporter.tell(Event::Left(ReadyInterface::of(live))),
                Loss::Program(at) => reporter.error(&format!(
                    "{name}: nothing is captured at {} any more: somebody has removed the \
                     program, or a move to another network namespace has",
                    at.name()
                )),
            }
        }
        if self.links.all_gone() && !self.machine.interfaces.selection.is_open() {
            reporter.tell(Event::Stopped(Stop::InterfaceGone));
        }
    }

    /// Tells once that what the capture has changed is nobody's any more.
    fn supervise_keeper(&mut self, reporter: &mut Reporter<'_>) {
        let attaching = self.attaching.as_mut().filter(|_| !self.is_keeper_lost);
        if attaching.is_some_and(Attaching::has_lost_keeper) {
            self.is_keeper_lost = true;
            reporter.error(
                "the process that gives settings back (tscap-keeper) has ended: what this capture \
                 has changed stays changed\nhint: tscap restore, when the capture has ended",
            );
        }
    }

    /// Goes to what is at XDP of others now, where frames are captured beside that.
    fn follow_others(&mut self, reporter: &mut Reporter<'_>) {
        let interfaces = &self.machine.interfaces;
        for changed in self.links.look_beside(&interfaces.scopes) {
            let live = &self.links.0[changed.number as usize];
            if let Some(attaching) = &mut self.attaching {
                let scope = &interfaces.scopes[live.scope()];
                let followed = attaching.follow(live, &changed, scope, &self.loaded, reporter);
                if let Err(failure) = followed {
                    reporter.error(&failure.to_string());
                }
            }
        }
    }

    /// Takes what the converter has to say; gives the reason if it ends the capture.
    pub fn take(&mut self, event: engine::Event, reporter: &mut Reporter<'_>) -> Option<Stop> {
        match event {
            engine::Event::CountReached => Some(Stop::Count),
            engine::Event::PeriodsOver => Some(Stop::Files),
            engine::Event::ReaderGone => Some(Stop::ReaderGone),
            engine::Event::FileClosed { file, error } => {
                if let Some(error) = &error {
                    reporter.error(&not_intact(&file.path.display(), error));
                }
                let failed = error.as_ref().is_some_and(CloseError::is_of_disk);
                self.files.closed(file, error.as_ref(), reporter);
                failed.then_some(Stop::WriteError)
            }
            engine::Event::Flushed { next } => {
                reporter.tell(Event::Flushed { next });
                None
            }
            engine::Event::FileRemoved { path, frames } => {
                self.files.removed(path, frames, reporter);
                None
            }
            engine::Event::NotRemoved { path, error } => {
                reporter.warning(&format!("cannot remove {}: {error}", path.display()));
                None
            }
            engine::Event::NextFileFailed { path, error } => {
                reporter.error(&format!(
                    "cannot begin the next file, {}: {error}\n\
                     hint: the files so far are complete; give -w a place that stays writable",
                    path.display()
                ));
                Some(Stop::WriteError)
            }
            engine::Event::WriteFailed { path, error } => {
                let target = path.map_or_else(|| self.plan.target.clone(), Target::Path);
                reporter.error(&format!(
                    "cannot write to {target}: {error}\n\
                     hint: make room, or give -w another place"
                ));
                Some(Stop::WriteError)
            }
            engine::Event::Corrupt(corrupt) => {
                reporter.error(&format!("{corrupt}: please report this"));
                Some(Stop::InternalError)
            }
            engine::Event::Stepped { step_ns, cause } => {
                reporter.tell(Event::Stepped { step_ns, cause });
                None
            }
            engine::Event::CounterJumped { jump_ns } => {
                reporter.tell(Event::CounterJumped { jump_ns });
                None
            }
        }
    }
}

impl Drop for Parts {
    /// For a capture that nobody has finished: its programs would stay attached for as long as
    /// the converters run.
    fn drop(&mut self) {
        if self.writers.each.iter().any(|it| it.thread.is_some()) {
            // An interface that is gone has no program.
            let _ = self.links.detach();
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
