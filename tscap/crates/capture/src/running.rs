//! A capture while it runs: what is looked after, and what is told of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::event::{Event, Reporter};
use super::link_up::wait_for_links;
use super::parts::Parts;
use super::pulse::Pulse;
use super::state::{Account, Progress, Ready, ReadyInterface, ReadyWriter};
use super::summary::{FilterSummary, Stop};
use tscap_base::failure::{Context as _, Failure};
use tscap_file::accounting::Observed;
use tscap_host::readable::Readable;
use tscap_time::timex::ClockSetWatch;

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
