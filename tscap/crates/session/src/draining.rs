//! A measurement while it goes on, and what is left of it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tscap_base::failure::{Context as _, Failure};
use tscap_capture::going_on::drop_other_privileges;
use tscap_capture::{Counter, Event, Reporter};
use tscap_clock::{RawStamp, StampPath, Tracker};
use tscap_common::hook::Slot;
use tscap_file::accounting::Outcomes;
use tscap_network::bpf::wait_for_running_programs;
use tscap_programs::hook::{Loaded, Shares};
use tscap_references::{Followed, ReferenceSummary};
use tscap_utc::DisruptionWatch;

use super::drain::{Drained, Worker};
use super::points::{Attached, Points};
use super::sink::{Progress, Sink};

/// The offset of each CPU's counter is checked this often.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// A measurement, as a command has it.
pub trait Live {
    /// What is told of each second.
    type Latest;

    /// What a reader must know before the figures.
    fn warnings(&self) -> Vec<String>;

    /// Where packets are seen, for people.
    fn ready(&self) -> String;

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` at the end. Threads that run already keep theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure>;

    /// Looks after programs and counters; to be called some times a second. Says why the
    /// measurement is over, if it is.
    fn supervise(&mut self, on_event: &mut dyn FnMut(Event)) -> Option<EndReason>;

    /// The latest second, unless it was taken before.
    fn take_latest(&self) -> Option<Self::Latest>;
}

/// Why a measurement ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// As many packets as asked for were counted.
    Count,
    /// An interface is gone, or its program.
    InterfaceGone,
    /// The records make no sense.
    Corrupt,
}

/// A measurement while it goes on. When it is dropped, nothing stays attached.
pub struct Draining<S: Sink, P> {
    // Before the thread, which takes out what is left.
    points: P,
    worker: Worker<S>,
    loaded: Loaded,
    path: StampPath,
    counter: Option<Counter>,
    /// Tells of disruptions of the stamps' counter, where the hypervisor does.
    disruptions: Option<DisruptionWatch>,
    reference: Option<Followed>,
    checked: Instant,
    started: Instant,
}

/// What is left of a measurement.
#[derive(Debug)]
pub struct Ended<S, P> {
    /// What has become of the records.
    pub sink: S,
    /// The clock of the stamps.
    pub tracker: Tracker,
    /// Of a time when all programs had ended.
    pub end: RawStamp,
    /// Where the programs were attached; they are detached.
    pub points: P,
    /// As they were loaded.
    pub loaded: Loaded,
    /// How the clock was read.
    pub path: StampPath,
    /// The reference of the times, if they are not the host's.
    pub reference: Option<ReferenceSummary>,
    /// What a reader must know of the figures.
    pub warnings: Vec<String>,
}

impl<S: Sink, P: Points> Draining<S, P> {
    pub(super) fn new(
        points: P,
        worker: Worker<S>,
        (loaded, path, counter): (Loaded, StampPath, Option<Counter>),
        (reference, disruptions): (Option<Followed>, Option<DisruptionWatch>),
    ) -> Self {
        Self {
            points,
            worker,
            loaded,
            path,
            counter,
            disruptions,
            reference,
            checked: Instant::now(),
            started: Instant::now(),
        }
    }

    /// The programs, where they are attached.
    pub fn points(&self) -> &P {
        &self.points
    }

    /// How long packets have been taken, s.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The clock of the stamps, for people.
    pub fn clock(&self) -> String {
        let path = self.path;
        let reference = self.reference.as_ref();
        let reference = reference.map_or(String::new(), |it| format!(", times by {}", it.name()));
        format!(
            "clock {} by {}{reference}",
            path.source().name(),
            path.function()
        )
    }

    /// As [`Live::give_up_privileges`].
    ///
    /// # Errors
    /// As [`Live`] says of it.
    pub fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        let counters = &self.loaded.counters;
        let reads = || counters.seen().is_ok();
        let reporter = &mut Reporter::new(on_event);
        drop_other_privileges(self.points.changes(), makes_files, &reads, reporter)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let shared = &self.worker.shared;
        Progress {
            counted: shared.counted.load(Ordering::Relaxed),
            open: shared.open.load(Ordering::Relaxed),
        }
    }

    /// The latest second, unless it was taken before.
    pub fn take_latest(&self) -> Option<S::Latest> {
        let latest = self.worker.shared.latest.lock();
        latest.ok().and_then(|mut latest| latest.take())
    }

    /// As [`Live::supervise`]; it is over when `most` packets are counted.
    pub fn supervise(
        &mut self,
        most: Option<u64>,
        on_event: &mut dyn FnMut(Event),
    ) -> Option<EndReason> {
        let disruptions = self.disruptions.as_mut();
        if disruptions.is_some_and(DisruptionWatch::was_disrupted) {
            on_event(Event::Disrupted);
        }
        let shared = &self.worker.shared;
        if self.checked.elapsed() >= CHECK_EVERY {
            self.checked = Instant::now();
            if let Some(counter) = &mut self.counter
                && let Some(found) =
                    counter.recheck(self.loaded.object(), &mut Reporter::new(on_event))
                && let Ok(mut place) = shared.recalibrated.lock()
            {
                *place = Some(found);
            }
        }
        let is_corrupt = shared.is_corrupt.load(Ordering::Relaxed);
        let counted = shared.counted.load(Ordering::Relaxed);
        match () {
            () if is_corrupt => Some(EndReason::Corrupt),
            () if most.is_some_and(|most| counted >= most) => Some(EndReason::Count),
            () if self.points.is_gone() => Some(EndReason::InterfaceGone),
            () => None,
        }
    }

    /// Ends: detaches, and takes out what is left.
    ///
    /// # Errors
    /// If the kernel does not say when the programs have ended.
    pub fn finish(self) -> Result<Ended<S, P>, Failure> {
        self.points.close();
        // Programs that are running may still record.
        wait_for_running_programs().context("cannot wait for the programs to end")?;
        let (drained, warnings) = self.worker.end()?;
        let Drained { sink, tracker, end } = drained;
        let bounds = self.reference.as_ref().zip(tracker.reference());
        let reference =
            bounds.map(|(of, bounds)| ReferenceSummary::of(of, bounds, tracker.host_bound_ns()));
        Ok(Ended {
            sink,
            tracker,
            end,
            points: self.points,
            loaded: self.loaded,
            path: self.path,
            reference,
            warnings,
        })
    }
}

impl<S: Sink, R> Draining<S, Attached<R>> {
    /// As [`Live::ready`]: where packets are seen, and by which clock.
    pub fn ready(&self) -> String {
        format!("{}, {}", self.points.ready(), self.clock())
    }
}

impl<S, P> Ended<S, P> {
    /// What the programs at each of `slots` did not record, and how many packets all of them
    /// saw.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn losses(&self, slots: &[Slot]) -> Result<(Vec<Outcomes>, u64), Failure> {
        let what = "cannot account for the packets";
        let counters = &self.loaded.counters;
        let losses = counters.losses(slots, &Shares::all()).context(what)?;
        let losses = losses.into_iter().next().unwrap_or_default();
        Ok((losses, counters.seen().context(what)?.sum()))
    }
}

impl<S: Sink, P> std::fmt::Debug for Draining<S, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draining").finish_non_exhaustive()
    }
}
