//! The end of a capture: detach, drain, account, write the last statistics, close.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::event::{Event, Reporter};
use super::files::{CommandsWait, not_intact};
use super::own_counts_text;
use super::parts::Parts;
use super::plan::Target;
use super::running::Running;
use super::summary::{FilesSummary, Stop, Summary};
use super::writing::{joined, on_thread, until_finished, until_on_disk};
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::MonoNs;
use tscap_engine::{CloseError, Finished, Output, Rotation};
use tscap_file::accounting::{Directed, Observed, Totals};
use tscap_network::bpf::wait_for_running_programs;

/// A capture that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The account; `None` if the output did not let go even when asked to.
    pub summary: Option<Summary>,
    /// Whether every file holds what was written into it.
    pub is_complete: bool,
    /// Whether every setting that the capture had changed is as it was.
    pub is_restored: bool,
    /// Whether the end was asked for again before everything was written.
    pub is_aborted: bool,
}

impl Ended {
    const ABANDONED: Self = Self {
        summary: None,
        is_complete: false,
        is_restored: true,
        is_aborted: true,
    };
}

/// What the end is told by and waits for.
struct Ending<'a, 'b, A> {
    parts: &'a mut Parts,
    /// Asked to end again.
    asked: A,
    reporter: &'a mut Reporter<'b>,
    /// Whether that has been asked for.
    is_asked: bool,
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
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Ended, Failure> {
        let seconds = self.started.elapsed().as_secs_f64();
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Stopped(late) => stop = stop.or_worse(late),
                event => on_event(event),
            }
        }
        let reporter = &mut Reporter::new(on_event);
        let parts = &mut self.parts;
        parts.detach(reporter).await?;
        let mut ending = Ending {
            parts,
            asked,
            reporter,
            is_asked: false,
        };
        let Some(finished) = ending.drain().await? else {
            return Ok(Ended::ABANDONED);
        };
        let (observed, totals) = ending.account(&finished)?;
        let finished = finished.into_iter().zip(observed.iter().zip(&totals));
        // Before the files' commands are waited for, which may take minutes.
        let attaching = ending.parts.attaching.take();
        let is_restored = attaching.is_none_or(|it| it.give_back(ending.reporter));
        // What the converter said last may be an error that nobody has heard yet.
        stop = ending.take_last_events(stop);

        let at = MonoNs::now();
        let Some((finished, is_written)) = ending.write_last(finished, at).await? else {
            return Ok(Ended::ABANDONED);
        };
        let mut summary = ending
            .parts
            .summarise(&finished, &totals, &observed, (stop, seconds));
        own_counts_text::tell(&summary, ending.reporter);
        let closed = ending.close(finished, at, &mut summary).await?;
        // Who asks again while the disk is waited for, and has it after all, misses nothing.
        let is_missing = summary.disk.is_some_and(|disk| !disk.has_all);
        let is_disk_left = ending.is_disk_left() && is_missing;
        let is_aborted = ending.is_aborted();
        if is_aborted {
            let reporter = "aborted: frames that could not be written are counted as write_failed";
            ending.reporter.error(reporter);
        }
        Ok(Ended {
            summary: Some(summary),
            is_complete: is_written && closed.is_complete,
            is_restored,
            is_aborted: is_aborted || closed.is_waiting_over || is_disk_left,
        })
    }
}

impl Parts {
    /// After this no program counts any more, and the converter ends with what the rings
    /// hold.
    async fn detach(&mut self, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
        let detached = self.links.detach();
        detached.context("cannot detach the programs")?;
        if wait_for_running_programs().is_err() {
            self.settle().await?;
        }
        // Stamps since the last check are bound by this one.
        self.recheck_counter(reporter);
        if let Some(attaching) = &mut self.attaching {
            attaching.end_ptp_clocks();
        }
        self.writers.request_stop();
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
    /// Waits for a thread that writes what writer number `writer` does. `None` if it hangs even
    /// when it is interrupted.
    async fn wait<T>(
        &mut self,
        writer: usize,
        thread: JoinHandle<T>,
    ) -> Result<Option<T>, Failure> {
        let writes = Arc::clone(&self.parts.writers.each[writer].shared.writes);
        let asked = (&mut self.is_asked, &mut self.asked);
        if until_finished(&thread, &writes, asked, self.reporter).await {
            joined(thread).map(Some)
        } else {
            self.reporter.error(
                "aborted: the output does not let go: frames that are not written are lost, \
                 and the file may end within a block",
            );
            Ok(None)
        }
    }

    /// Waits for a thread that closes what writer number `writer` wrote. `None` if it does not
    /// return when nobody waits for the disk any more.
    async fn wait_for_disk<T>(
        &mut self,
        writer: usize,
        thread: JoinHandle<T>,
    ) -> Result<Option<T>, Failure> {
        let writes = Arc::clone(&self.parts.writers.each[writer].shared.writes);
        let has_returned = until_on_disk(&thread, &writes, &mut self.asked, self.reporter).await;
        if writes.is_waiting_over() {
            for other in &self.parts.writers.each {
                other.shared.writes.end_waiting();
            }
        }
        if has_returned {
            joined(thread).map(Some)
        } else {
            let file = &self.parts.writers.each[writer].target;
            self.reporter
                .error(&not_intact(file, &CloseError::NotAwaited));
            Ok(None)
        }
    }

    /// Whether a disk is not waited for any more.
    fn is_disk_left(&self) -> bool {
        let mut writers = self.parts.writers.each.iter();
        writers.any(|it| it.shared.writes.is_waiting_over())
    }

    /// Whether the writing to any output was ended.
    fn is_aborted(&self) -> bool {
        let mut writers = self.parts.writers.each.iter();
        writers.any(|it| it.shared.writes.is_aborted())
    }

    /// What each converter leaves.
    async fn drain(&mut self) -> Result<Option<Vec<Finished>>, Failure> {
        let mut finished = Vec::new();
        for writer in 0..self.parts.writers.each.len() {
            let thread = self.parts.writers.each[writer].thread.take();
            let thread = thread.expect("taken here only");
            match self.wait(writer, thread).await? {
                Some(left) => finished.push(left),
                None => return Ok(None),
            }
        }
        Ok(Some(finished))
    }

    /// What each writer has.
    fn account(
        &mut self,
        finished: &[Finished],
    ) -> Result<(Vec<Observed>, Vec<Directed<Totals>>), Failure> {
        let observed = self.parts.observe()?;
        let Parts {
            loaded, writers, ..
        } = &*self.parts;
        let seen = loaded.counters.seen_by(&writers.shares);
        let seen = seen.context("cannot account for the frames")?;
        let of_writers = finished.iter().zip(seen).zip(&observed);
        let totals = of_writers.map(|((finished, seen), observed)| finished.totals(seen, observed));
        let totals = totals.collect();
        Ok((observed, totals))
    }

    /// The reason to end, which may be worse than `stop`.
    fn take_last_events(&mut self, mut stop: Stop) -> Stop {
        while let Ok(event) = self.parts.events.try_recv() {
            if let Some(late) = self.parts.take(event, self.reporter) {
                stop = stop.or_worse(late);
            }
        }
        stop
    }

    /// Writes the last statistics of each; says whether that worked.
    async fn write_last(
        &mut self,
        finished: impl Iterator<Item = (Finished, (&Observed, &Directed<Totals>))>,
        at: MonoNs,
    ) -> Result<Option<(Vec<Finished>, bool)>, Failure> {
        let (mut all, mut is_written) = (Vec::new(), true);
        for (writer, (mut finished, (observed, totals))) in finished.enumerate() {
            let file = self.last_file(writer, finished.rotation.as_ref());
            let (observed, totals) = (observed.clone(), *totals);
            let last = on_thread(move || {
                let written = finished.write_last_statistics(at, &observed, &totals);
                (finished, written)
            })?;
            let Some((finished, written)) = self.wait(writer, last).await? else {
                return Ok(None);
            };
            is_written &= written.is_ok();
            if let Err(error) = written
                && !self.is_aborted()
            {
                let cause = std::error::Error::source(&error).unwrap_or(&error);
                self.reporter.error(&format!(
                    "cannot write the last statistics to {file}: {cause}\n\
                     hint: make room, or give -w another place"
                ));
            }
            all.push(finished);
        }
        Ok(Some((all, is_written)))
    }

    fn last_file(&self, writer: usize, rotation: Option<&Rotation>) -> Target {
        match rotation {
            Some(rotation) => Target::Path(rotation.current_path().into()),
            None => self.parts.writers.each[writer].target.clone(),
        }
    }

    /// Closes what is open, at the time `at`.
    async fn close(
        &mut self,
        finished: Vec<Finished>,
        at: MonoNs,
        summary: &mut Summary,
    ) -> Result<Closed, Failure> {
        let (mut is_complete, mut is_on_disk) = (true, true);
        let mut longest_cut = None;
        for (writer, finished) in finished.into_iter().enumerate() {
            let Some(rotation) = finished.rotation else {
                let is_stopped_short = summary.stopped_by == Stop::WriteError;
                match self.close_one(writer, finished.output).await? {
                    Ok(()) if is_stopped_short => self.note_of_end(writer),
                    Ok(()) => {}
                    Err(error) => {
                        is_complete = false;
                        is_on_disk &= !error.is_of_disk();
                    }
                }
                continue;
            };
            longest_cut = longest_cut.max(Some(rotation.longest_cut()));
            let end = finished.tracker.real_at(at);
            let written = finished.finisher.written();
            let closing = rotation.close_last(finished.output, written, end);
            let closed = self.wait_for_disk(writer, closing).await?;
            (is_complete, is_on_disk) = (
                is_complete && closed.is_some(),
                is_on_disk && closed.is_some(),
            );
        }
        let mut is_waiting_over = false;
        if let Some(longest_cut) = longest_cut {
            let late = self.take_last_events(Stop::Signal);
            let files = &mut self.parts.files;
            is_on_disk &= files.are_on_disk();
            let waited = files
                .wait_for_commands(&mut self.asked, self.reporter)
                .await;
            summary.files = Some(FilesSummary {
                longest_cut_ns: u64::try_from(longest_cut.as_nanos()).unwrap_or(u64::MAX),
                ..files.summary()
            });
            is_complete &=
                late.is_wanted() && waited != CommandsWait::TooLong && files.are_intact();
            is_waiting_over = waited == CommandsWait::Aborted;
        }
        if let Some(disk) = &mut summary.disk {
            disk.has_all = is_on_disk;
        }
        Ok(Closed {
            is_complete,
            is_waiting_over,
        })
    }

    /// Says how the file of a writer ends to which a write has failed: that was looked at.
    fn note_of_end(&mut self, writer: usize) {
        if let target @ Target::Path(_) = &self.parts.writers.each[writer].target {
            let note = format!("{target} ends with its last whole frame");
            self.reporter.note(&note);
        }
    }

    /// Closes the only file of a writer.
    async fn close_one(
        &mut self,
        writer: usize,
        output: Output,
    ) -> Result<Result<(), CloseError>, Failure> {
        let id = output.id();
        let closing = on_thread(move || output.close())?;
        let Some(closed) = self.wait_for_disk(writer, closing).await? else {
            return Ok(Err(CloseError::NotAwaited));
        };
        let target = &self.parts.writers.each[writer].target;
        match (&closed, target) {
            (Err(error), _) => self.reporter.error(&not_intact(target, error)),
            (Ok(()), Target::Path(path)) => note_of_renaming(path, id, self.reporter),
            (Ok(()), Target::Stdout) => {}
        }
        Ok(closed)
    }
}

/// Says where the capture is not, if its file has lost its name to none or another.
fn note_of_renaming(path: &Path, id: Option<(u64, u64)>, reporter: &mut Reporter<'_>) {
    let there = match path.metadata() {
        Ok(data) => Some((data.dev(), data.ino())),
        // The user that goes on with the capture need not be able to look.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return,
        Err(_) => None,
    };
    if id.is_some() && there != id {
        reporter.warning(&format!(
            "{} was renamed meanwhile: the capture is under the new name",
            path.display()
        ));
    }
}
