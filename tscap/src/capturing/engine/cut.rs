//! Where one file ends and the next one begins: between two blocks.

use std::time::Instant;

use super::pieces::FileLimits;
use super::window::WINDOW_NS;
use super::{Converter, Event, Output, Rotation};
use crate::capturing::clock::{CrossTimestamp, MonoNs, RawStamp, Reference};
use crate::capturing::pcapng::FileWriter;

impl<R: Reference + Reference<MonoNs>> Converter<R> {
    pub(super) fn begin_first_file(&mut self, mut rotation: Rotation) {
        let start = self.tracker.mono_at(self.file.start());
        rotation.begin(start, |mono| self.tracker.real_at(mono));
        self.pieces.batch.begin_file(rotation.limits.frames);
        self.pieces.file.bytes = rotation.limits.bytes.unwrap_or(u64::MAX);
        self.pieces.path = Some(rotation.current_path().into());
        self.rotation = Some(rotation);
    }

    /// The next period begins, for this drain before the clock reading `cross`, with
    /// the first block stamped after the deadline.
    pub(super) fn end_file_in_time(&mut self, cross: &CrossTimestamp) {
        let deadline = self.deadline();
        self.pieces.file.until = match deadline.filter(|deadline| *deadline <= cross.mono[1]) {
            Some(deadline) => RawStamp(self.tracker.stamp_at(cross, deadline).0.saturating_sub(1)),
            // No block is as young. One with a stamp of the future was stamped
            // before the clock was set back.
            None => FileLimits::NONE.until,
        };
    }

    /// After everything stamped before the deadline is written, the next period
    /// begins without waiting for a block. The rings were looked into after `before`.
    pub(super) fn cut_if_over(&mut self, before: MonoNs) {
        let drained = MonoNs(before.0.saturating_sub(WINDOW_NS));
        if self.deadline().is_some_and(|deadline| deadline <= drained) {
            self.cut(drained, true);
        }
    }

    pub(super) fn clock_was_set(&mut self, now: MonoNs) {
        let schedule = self.rotation.as_mut().and_then(|it| it.schedule.as_mut());
        if let Some(schedule) = schedule {
            schedule.clock_was_set(now, |mono| self.tracker.real_at(mono));
        }
    }

    fn deadline(&self) -> Option<MonoNs> {
        let schedule = self.rotation.as_ref()?.schedule.as_ref()?;
        Some(schedule.deadline())
    }

    /// Ends the current file and begins the next one, whose first block is of the
    /// time `at` or later. What was taken out of the rings is written.
    pub(super) fn cut(&mut self, at: MonoNs, begins_period: bool) {
        let begun = Instant::now();
        self.end_and_begin(at, begins_period);
        if let Some(rotation) = &mut self.rotation {
            rotation.cut_took(begun.elapsed());
        }
    }

    fn end_and_begin(&mut self, at: MonoNs, begins_period: bool) {
        let Some(rotation) = &mut self.rotation else {
            return;
        };
        if !self.pieces.batch.is_writing() {
            // There is nothing to write into another one.
            rotation.schedule = None;
            return;
        }
        if begins_period && rotation.was_last_period() {
            rotation.schedule = None;
            self.pieces.batch.stop();
            self.pieces.tell(Event::PeriodsOver);
            return;
        }
        let to_real = |mono| self.tracker.real_at(mono);
        let start = match &mut rotation.schedule {
            Some(schedule) if begins_period => schedule.move_on(at, to_real),
            // A late frame may be older than the file that it ends.
            _ => to_real(at).max(self.file.start()),
        };
        // The old file is complete before the next one is tried.
        let counts = self.write_statistics(self.tracker.mono_at(start), Output::write_final);
        let next = counts.and_then(|counts| Ok(self.file.next(start, counts)?));
        match next {
            Ok(next) => self.begin_next_file(next, begins_period),
            Err(error) => self.pieces.write_failed(&[], error),
        }
    }

    fn begin_next_file(&mut self, mut next: FileWriter, begins_period: bool) {
        let Some(rotation) = &mut self.rotation else {
            return;
        };
        let frames = self.pieces.batch.written();
        let headers = next.take();
        match rotation.open_next(
            next.start(),
            begins_period,
            frames,
            &headers,
            &self.pieces.output,
        ) {
            Ok(opened) => {
                rotation.switch(&mut self.pieces.output, opened);
                self.pieces.path = Some(rotation.current_path().into());
                self.pieces.batch.begin_file(rotation.limits.frames);
                self.file = next;
            }
            Err((path, error)) => {
                self.pieces.batch.break_off();
                self.pieces.tell(Event::NextFileFailed { path, error });
            }
        }
    }
}
