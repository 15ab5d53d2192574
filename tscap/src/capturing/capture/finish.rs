//! The end of a capture: detach, drain, account, write the last statistics, close.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::event::{Event, Listener};
use super::files::{CommandsWait, not_intact};
use super::own_counts;
use super::plan::Target;
use super::running::{Parts, Running};
use super::summary::{ClockSummary, DirectionSummary, FilesSummary, FilterSummary, Stop, Summary};
use super::writing::{joined, on_thread, until_finished};
use crate::capturing::accounting::{Directed, Direction, Observed, Totals};
use crate::capturing::clock::MonoNs;
use crate::capturing::engine::{Finished, Output, Rotation, WriteWatch};
use crate::capturing::host::bpf::wait_for_running_programs;
use crate::failure::{Context as _, Failure};

/// A capture that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The account; `None` if the output did not let go even when asked to.
    pub summary: Option<Summary>,
    /// Whether every file holds what was written into it.
    pub is_complete: bool,
    /// Whether the end was asked for again before everything was written.
    pub is_aborted: bool,
}

impl Ended {
    const ABANDONED: Self = Self {
        summary: None,
        is_complete: false,
        is_aborted: true,
    };
}

/// What the end is told by and waits for.
struct Ending<'a, 'b, A> {
    parts: &'a mut Parts,
    /// Asked to end again.
    asked: A,
    told: &'a mut Listener<'b>,
    writes: Arc<WriteWatch>,
}

impl Running {
    /// Detaches the programs, drains the rings, accounts for every frame and closes the
    /// file. `stop` is why. Each time that `asked` is ready the end is asked for again:
    /// what hangs then is aborted (`std::future::pending` for never).
    ///
    /// # Errors
    /// If the programs can't be detached or the counters not be read.
    pub async fn finish(
        mut self,
        mut stop: Stop,
        asked: impl AsyncFnMut(),
        hear: &mut dyn FnMut(Event),
    ) -> Result<Ended, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Stopped(late) => stop = stop.or_worse(late),
                event => hear(event),
            }
        }
        let told = &mut Listener::new(hear);
        let parts = &mut self.parts;
        parts.detach(told).await?;
        let writes = Arc::clone(&parts.shared.writes);
        let mut ending = Ending {
            parts,
            asked,
            told,
            writes,
        };
        let Some(finished) = ending.drain().await? else {
            return Ok(Ended::ABANDONED);
        };
        let (observed, totals) = ending.account(&finished)?;
        // Before the files' commands are waited for, which may take minutes.
        ending.parts.attaching = None;
        // What the converter said last may be an error that nobody has heard yet.
        stop = ending.hear_the_last(stop);

        let at = MonoNs::now();
        let Some((finished, is_written)) =
            ending.write_last(finished, at, &observed, totals).await?
        else {
            return Ok(Ended::ABANDONED);
        };
        let mut summary = ending.summarise(&finished, &totals, &observed, (stop, seconds));
        own_counts::tell(&summary, ending.told);
        let Some(closed) = ending
            .close(finished, at, summary.written, &mut summary)
            .await?
        else {
            return Ok(Ended::ABANDONED);
        };
        let is_aborted = ending.writes.is_aborted();
        if is_aborted {
            let told = "aborted: frames that could not be written are counted as write_failed";
            ending.told.error(told);
        }
        Ok(Ended {
            summary: Some(summary),
            is_complete: is_written && closed.is_complete,
            is_aborted: is_aborted || closed.is_waiting_over,
        })
    }
}

impl Parts {
    /// After this no program counts any more, and the converter ends with what the rings
    /// hold.
    async fn detach(&mut self, told: &mut Listener<'_>) -> Result<(), Failure> {
        let detached = self.links.detach();
        detached.context("cannot detach the programs")?;
        if wait_for_running_programs().is_err() {
            self.settle().await?;
        }
        // Stamps since the last check are bound by this one.
        self.recheck_counter(told);
        self.shared.request_stop();
        self.wake_converter();
        Ok(())
    }

    /// Waits until no program counts any more, where the kernel can't be asked: at
    /// most a second.
    async fn settle(&self) -> Result<(), Failure> {
        let mut before = None;
        for _ in 0..50 {
            let seen = self.loaded.counters.seen();
            let seen = Some(seen.context("cannot account for the frames")?);
            if seen == before {
                return Ok(());
            }
            before = seen;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(io::Error::from(io::ErrorKind::TimedOut)).context("cannot wait for the programs to end")
    }
}

/// How the files were closed.
struct Closed {
    is_complete: bool,
    is_waiting_over: bool,
}

impl<A: AsyncFnMut()> Ending<'_, '_, A> {
    /// Waits for a thread that writes. `None` if it hangs even when it is interrupted.
    async fn wait<T>(&mut self, thread: JoinHandle<T>) -> Result<Option<T>, Failure> {
        match until_finished(&thread, &self.writes, &mut self.asked, self.told).await {
            true => joined(thread).map(Some),
            false => {
                self.told.error(
                    "aborted: the output does not let go: frames that are not written are lost, \
                     and the file may end within a block",
                );
                Ok(None)
            }
        }
    }

    async fn drain(&mut self) -> Result<Option<Finished>, Failure> {
        let converter = self.parts.converter.take();
        self.wait(converter.expect("taken here only")).await
    }

    fn account(&self, finished: &Finished) -> Result<(Observed, Directed<Totals>), Failure> {
        let observed = self.parts.observe()?;
        let counters = &self.parts.loaded.counters;
        let seen = counters.seen().context("cannot account for the frames")?;
        let totals = finished.totals(seen, &observed);
        Ok((observed, totals))
    }

    /// The reason to end, which may be worse than `stop`.
    fn hear_the_last(&mut self, mut stop: Stop) -> Stop {
        while let Ok(event) = self.parts.events.try_recv() {
            if let Some(late) = self.parts.take(event, self.told) {
                stop = stop.or_worse(late);
            }
        }
        stop
    }

    /// Writes the last statistics; says whether that worked.
    async fn write_last(
        &mut self,
        mut finished: Finished,
        at: MonoNs,
        observed: &Observed,
        totals: Directed<Totals>,
    ) -> Result<Option<(Finished, bool)>, Failure> {
        let file = self.last_file(finished.rotation.as_ref());
        let observed = observed.clone();
        let last = on_thread(move || {
            let written = finished.write_last_statistics(at, &observed, &totals);
            (finished, written)
        })?;
        let Some((finished, written)) = self.wait(last).await? else {
            return Ok(None);
        };
        let is_written = written.is_ok();
        if let Err(error) = written
            && !self.writes.is_aborted()
        {
            let cause = std::error::Error::source(&error).unwrap_or(&error);
            self.told.error(&format!(
                "cannot write the last statistics to {file}: {cause}\n\
                 hint: make room, or give -w another place"
            ));
        }
        Ok(Some((finished, is_written)))
    }

    fn last_file(&self, rotation: Option<&Rotation>) -> Target {
        match rotation {
            Some(rotation) => Target::Path(rotation.current_path().into()),
            None => self.parts.plan.target.clone(),
        }
    }

    /// Closes what is open, at the time `at` and after so many frames `written`.
    async fn close(
        &mut self,
        finished: Finished,
        at: MonoNs,
        written: u64,
        summary: &mut Summary,
    ) -> Result<Option<Closed>, Failure> {
        let end = finished.tracker.real_at(at);
        let Some(rotation) = finished.rotation else {
            return self.close_one(finished.output).await;
        };
        let longest_cut = rotation.longest_cut().as_nanos();
        let closing = rotation.close_last(finished.output, written, end);
        if self.wait(closing).await?.is_none() {
            return Ok(None);
        }
        let late = self.hear_the_last(Stop::Signal);
        let waited = self
            .parts
            .files
            .wait_for_commands(&mut self.asked, self.told)
            .await;
        let files = &self.parts.files;
        summary.files = Some(FilesSummary {
            longest_cut_ns: u64::try_from(longest_cut).unwrap_or(u64::MAX),
            ..files.summary()
        });
        Ok(Some(Closed {
            is_complete: late.is_wanted() && waited != CommandsWait::TooLong && files.are_intact(),
            is_waiting_over: waited == CommandsWait::Aborted,
        }))
    }

    async fn close_one(&mut self, output: Output) -> Result<Option<Closed>, Failure> {
        let id = output.id();
        let Some(closed) = self.wait(on_thread(move || output.close())?).await? else {
            return Ok(None);
        };
        let target = &self.parts.plan.target;
        match (&closed, target) {
            (Err(error), _) => self.told.error(&not_intact(target, error)),
            (Ok(()), Target::Path(path)) => note_of_renaming(path, id, self.told),
            (Ok(()), Target::Stdout) => {}
        }
        Ok(Some(Closed {
            is_complete: closed.is_ok(),
            is_waiting_over: false,
        }))
    }

    fn summarise(
        &self,
        finished: &Finished,
        of_each: &Directed<Totals>,
        observed: &Observed,
        (stop, seconds): (Stop, f64),
    ) -> Summary {
        let Parts { plan, path, .. } = &*self.parts;
        let tracker = &finished.tracker;
        let totals = of_each.sum();
        Summary {
            file: plan.target.to_string(),
            files: None,
            filter: plan.filter.as_ref().map(FilterSummary::of),
            tap: plan.tap.is_some(),
            seconds,
            seen: totals.seen,
            written: totals.written,
            bytes_written: finished.bytes(),
            bytes_direct: finished.written_direct(),
            outcomes: totals.outcomes,
            off_cpu: observed.off_cpu,
            directions: self.directions(of_each),
            adds_up: Direction::ALL.iter().all(|it| of_each[*it].add_up()),
            interfaces: self
                .parts
                .links
                .accounts(observed, &finished.finisher.counts),
            clock: ClockSummary {
                source: path.source().name().into(),
                path: path.function().into(),
                ordered: path.is_ordered(),
                counter: tracker.counter_report(),
                host_bound_ns: tracker.host_bound_ns(),
                synchronised: observed.utc_bound_ns.is_some(),
                utc_bound_ns: observed.utc_bound_ns,
                segments: tracker.segments().to_vec(),
                segments_forgotten: tracker.segments_forgotten(),
                steps: tracker.steps(),
                order: finished.order(),
                ambiguous: finished.finisher.ambiguous,
                bound_raised: tracker.bound_raised(),
            },
            stopped_by: stop,
        }
    }

    /// The account of each direction that is captured.
    fn directions(&self, of_each: &Directed<Totals>) -> Vec<DirectionSummary> {
        let links = &self.parts.links.0;
        let is_taken = |it: &Direction| links.iter().any(|live| live.at(*it).is_some());
        let taken = Direction::ALL.into_iter().filter(is_taken);
        taken
            .map(|it| DirectionSummary::of(it, None, of_each[it]))
            .collect()
    }
}

/// Says where the capture is not, if its file has lost its name to none or another.
fn note_of_renaming(path: &Path, id: Option<(u64, u64)>, told: &mut Listener<'_>) {
    let there = match path.metadata() {
        Ok(data) => Some((data.dev(), data.ino())),
        // The user that goes on with the capture need not be able to look.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return,
        Err(_) => None,
    };
    if id.is_some() && there != id {
        told.warning(&format!(
            "{} was renamed meanwhile: the capture is under the new name",
            path.display()
        ));
    }
}
