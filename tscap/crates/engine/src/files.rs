//! The files of a capture from one to the next: between two blocks.

use std::time::{Duration, Instant};

use super::block_writer::BlockWriter;
use super::shared::Shared;
use super::window::WINDOW_NS;
use super::{Event, Output, OutputError, Rotation};
use tscap_clock::{CrossTimestamp, MonoNs, RawStamp, RealNs, Tracker};
use tscap_file::accounting::Counts;
use tscap_file::pcapng::{FileWriter, most_final_bytes};

/// Statistics go into the file this often, unless something else is asked for.
pub const STATISTICS_EVERY: Duration = Duration::from_secs(10);

/// The current file's headers and statistics, and those of the files after it.
#[derive(Debug)]
pub(super) struct Files {
    pub file: FileWriter,
    pub rotation: Option<Rotation>,
    pub statistics_every: Duration,
    /// When somebody has asked for the next file.
    pub asked: Option<MonoNs>,
    last_statistics: MonoNs,
}

impl Files {
    /// The file that `file` has written the headers of.
    pub fn new(file: FileWriter, tracker: &Tracker) -> Self {
        let last_statistics = tracker.mono_at(file.start());
        Self {
            file,
            rotation: None,
            statistics_every: STATISTICS_EVERY,
            asked: None,
            last_statistics,
        }
    }

    /// Makes the current file the first of `rotation`.
    pub fn begin(&mut self, mut rotation: Rotation, tracker: &Tracker, writer: &mut BlockWriter) {
        let start = tracker.mono_at(self.file.start());
        rotation.begin(start, |mono| tracker.real_at(mono));
        writer.finisher.begin_file(rotation.limits);
        writer.path = Some(rotation.current_path().into());
        self.rotation = Some(rotation);
    }

    /// Bytes in the files before the current one.
    pub fn earlier_bytes(&self) -> u64 {
        self.rotation.as_ref().map_or(0, Rotation::earlier_bytes)
    }

    /// The stamp with which the next period begins, for a drain before the clock reading
    /// `cross`: the first one after the deadline.
    pub fn end_in_time(&self, cross: &CrossTimestamp, tracker: &Tracker) -> RawStamp {
        match self
            .deadline()
            .filter(|deadline| *deadline <= cross.mono[1])
        {
            Some(deadline) => RawStamp(tracker.stamp_at(cross, deadline).0.saturating_sub(1)),
            // No block is as young. One with a stamp of the future was stamped
            // before the clock was set back.
            None => RawStamp::NEVER,
        }
    }

    /// When the next period begins without waiting for a block: after everything stamped
    /// before the deadline is written. The rings were looked into after `before`.
    pub fn period_over(&self, before: MonoNs) -> Option<MonoNs> {
        let drained = MonoNs(before.0.saturating_sub(WINDOW_NS));
        let is_over = self.deadline().is_some_and(|deadline| deadline <= drained);
        is_over.then_some(drained)
    }

    pub fn clock_was_set(&mut self, now: MonoNs, tracker: &Tracker) {
        let schedule = self.rotation.as_mut().and_then(|it| it.schedule.as_mut());
        if let Some(schedule) = schedule {
            schedule.clock_was_set(now, |mono| tracker.real_at(mono));
        }
    }

    fn are_statistics_due(&self, now: MonoNs) -> bool {
        let since = now.0.saturating_sub(self.last_statistics.0);
        u128::from(since) >= self.statistics_every.as_nanos()
    }

    /// When the current file ends: with its period, or because somebody asks for that.
    fn deadline(&self) -> Option<MonoNs> {
        self.period_end().into_iter().chain(self.asked).min()
    }

    fn period_end(&self) -> Option<MonoNs> {
        let schedule = self.rotation.as_ref()?.schedule.as_ref()?;
        Some(schedule.deadline())
    }

    /// Whether somebody has asked for the end that is due, rather than the period is over.
    fn take_asked(&mut self) -> bool {
        let period = self.period_end();
        let due = self
            .asked
            .take_if(|asked| period.is_none_or(|end| *asked < end));
        due.is_some()
    }
}

/// The current file with all that goes into it: what is needed to end it.
pub(super) struct Open<'a> {
    pub files: &'a mut Files,
    pub tracker: &'a mut Tracker,
    pub writer: &'a mut BlockWriter,
    pub shared: &'a Shared,
}

impl Open<'_> {
    /// Writes the statistics that are due.
    pub fn write_statistics_due(&mut self, now: MonoNs) {
        if self.files.are_statistics_due(now)
            && self.writer.finisher.is_writing()
            && let Err(error) = self.write_statistics(now, Output::write_between)
        {
            self.writer.write_failed(error);
        }
    }

    /// Describes the interfaces that have joined.
    pub fn describe_joined(&mut self) {
        let Self {
            files,
            writer,
            shared,
            ..
        } = self;
        for interface in shared.take_described() {
            writer.finisher.add_interface();
            let described = files.file.describe(interface);
            if !writer.finisher.is_writing() {
                continue;
            }
            let room = most_final_bytes(files.file.interfaces());
            // Without it there may be no room for the last statistics, which is told then.
            let _ = writer.output.reserve(room);
            let described = described.map_err(OutputError::from);
            if let Err(error) = described.and_then(|block| writer.output.write_between(block)) {
                writer.write_failed(error);
            }
        }
    }

    /// Writes the statistics of the current file up to now by `write`. Gives the counts.
    fn write_statistics(
        &mut self,
        at: MonoNs,
        write: impl Fn(&mut Output, Vec<u8>) -> Result<(), OutputError>,
    ) -> Result<Counts, OutputError> {
        let Self {
            files,
            tracker,
            writer,
            shared,
        } = self;
        files.last_statistics = at;
        let observed = shared.observed.lock().map(|seen| seen.clone());
        let counts = writer.finisher.counts(&observed.unwrap_or_default());
        let order = writer.finisher.order_in_file(tracker);
        let blocks = files.file.statistics(tracker, at, &counts, order, None)?;
        write(&mut writer.output, blocks)?;
        Ok(counts)
    }

    /// Ends the current file and begins the next one, whose first block is of the
    /// time `at` or later. What was taken out of the rings is written. Where somebody has asked
    /// for that and there is no other file, the current one goes on.
    pub fn rotate(&mut self, at: MonoNs, mut begins_period: bool) {
        let begun = Instant::now();
        let is_asked = begins_period && self.files.take_asked();
        if is_asked {
            let start = self.start_at(at);
            let rotation = self.files.rotation.as_ref();
            if !rotation.is_some_and(|rotation| rotation.can_begin(start)) {
                return self.flush(at);
            }
            begins_period = false;
        }
        // A frame that can't be written is not in the old file's account.
        self.writer.settle();
        let is_begun = self.end_and_begin(at, begins_period, is_asked);
        if let Some(rotation) = &mut self.files.rotation {
            rotation.cut_took(begun.elapsed());
        }
        if is_asked && is_begun {
            let next = self.writer.path.clone();
            self.writer.tell(Event::Flushed { next });
        }
    }

    /// Writes what waits, with the statistics up to `at`: the file goes on.
    fn flush(&mut self, at: MonoNs) {
        if !self.writer.finisher.is_writing() {
            return;
        }
        if let Err(error) = self.write_statistics(at, Output::write_between) {
            return self.writer.write_failed(error);
        }
        self.writer.flush_all();
        if self.writer.finisher.is_writing() {
            self.writer.tell(Event::Flushed { next: None });
        }
    }

    /// Start of a file that begins at `at`: a late frame may be older than the file that it
    /// ends.
    fn start_at(&self, at: MonoNs) -> RealNs {
        self.tracker.real_at(at).max(self.files.file.start())
    }

    /// Says whether the next file has begun.
    fn end_and_begin(&mut self, at: MonoNs, begins_period: bool, is_asked: bool) -> bool {
        let start = self.start_at(at);
        let (files, tracker) = (&mut *self.files, &*self.tracker);
        let Some(rotation) = &mut files.rotation else {
            return false;
        };
        if !self.writer.finisher.is_writing() {
            // There is nothing to write into another one.
            rotation.schedule = None;
            return false;
        }
        if begins_period && rotation.was_last_period() {
            rotation.schedule = None;
            self.writer.finisher.stop();
            self.writer.tell(Event::PeriodsOver);
            return false;
        }
        let to_real = |mono| tracker.real_at(mono);
        let start = match &mut rotation.schedule {
            Some(schedule) if begins_period => schedule.move_on(at, to_real),
            _ => start,
        };
        // The old file is complete before the next one is tried.
        let at = tracker.mono_at(start);
        let counts = self.write_statistics(at, |output, blocks| output.write_final(&blocks));
        let next = counts.and_then(|counts| Ok(self.files.file.next(start, counts)?));
        match next {
            Ok(next) => self.begin_next(next, begins_period, is_asked),
            Err(error) => {
                self.writer.write_failed(error);
                false
            }
        }
    }

    fn begin_next(&mut self, mut next: FileWriter, begins_period: bool, is_asked: bool) -> bool {
        let Some(rotation) = &mut self.files.rotation else {
            return false;
        };
        let name = if is_asked {
            rotation.asked_name(next.start())
        } else {
            rotation.next_name(next.start(), begins_period)
        };
        let writer = &mut *self.writer;
        let (start, frames) = (next.start(), writer.finisher.written());
        let headers = next.take();
        let opened = name
            .and_then(|path| rotation.open_next(path, start, frames, headers, &mut writer.output));
        match opened {
            Ok(opened) => {
                rotation.switch(&mut writer.output, opened);
                writer.path = Some(rotation.current_path().into());
                writer.finisher.begin_file(rotation.limits);
                self.files.file = next;
                true
            }
            Err((path, error)) => {
                writer.finisher.break_off();
                writer.tell(Event::NextFileFailed { path, error });
                false
            }
        }
    }
}
