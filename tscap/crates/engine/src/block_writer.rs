//! Finished blocks on their way to the output: straight from a ring, or by way of
//! a buffer where those of several rings come in one order.

use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::block_finisher::{BlockFinisher, RunProgress};
use super::file_room::FileBoundary;
use super::{Event, Guard, Output, OutputError};
use tscap_clock::{Conversion, MonoNs};
use tscap_programs::ring::Run;

/// Writes blocks to the output once they are finished.
#[derive(Debug)]
pub(super) struct BlockWriter {
    pub finisher: BlockFinisher,
    pub output: Output,
    /// Name of the current file, if it is one of several.
    pub path: Option<PathBuf>,
    /// Where this thread could starve its core.
    pub guard: Option<Guard>,
    events: UnboundedSender<Event>,
}

/// What became of the next blocks of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// They left the ring.
    Moved {
        /// Length of the blocks, bytes.
        length: usize,
        /// No block is waiting to be written any more: all rings can be released.
        is_written: bool,
    },
    /// They left the ring up to one that has to wait there, and are written.
    Held {
        /// Length of those that left, bytes.
        length: usize,
    },
    /// The next file must begin before them.
    Boundary(FileBoundary),
}

impl BlockWriter {
    pub(super) fn new(
        finisher: BlockFinisher,
        output: Output,
        events: UnboundedSender<Event>,
    ) -> Self {
        Self {
            finisher,
            output,
            path: None,
            guard: None,
            events,
        }
    }

    /// Finishes the next blocks of `run` and writes them, or keeps them for
    /// [`Self::flush`]. They are written where they lie if the ring `is_alone`
    /// in having blocks.
    #[inline]
    pub(super) fn write_next(
        &mut self,
        run: &mut Run<'_>,
        ring: usize,
        conversion: &Conversion,
        is_alone: bool,
    ) -> Step {
        let length = self.output.length();
        if let Some(boundary) = self.boundary(run, length) {
            return Step::Boundary(boundary);
        }
        let file = self.finisher.file;
        if self.finisher.is_writing() {
            run.end_at(file.until);
        }
        let left = file.bytes.saturating_sub(length).max(1);
        let room = self.output.piece() - self.output.waiting();
        let room = room.min(usize::try_from(left).unwrap_or(usize::MAX));
        let progress = self.finisher.finish(run, ring, conversion, room);
        let blocks = &run.bytes()[..progress.to_write];
        let in_place = is_alone && self.output.takes_in_place();
        if in_place {
            self.write_in_place(blocks);
        } else {
            self.output.copy(blocks);
        }
        let is_full = self.output.waiting() >= self.output.piece();
        if is_full || progress.is_news() {
            self.flush();
            self.tell_about(&progress);
        }
        if progress.awaits_description {
            return Step::Held {
                length: run.taken(),
            };
        }
        let length = match progress.corrupt {
            None => run.taken(),
            Some(_) => run.skip_to_head(),
        };
        Step::Moved {
            length,
            is_written: in_place || is_full,
        }
    }

    /// Where the next block belongs to the next file. `length` is that of the current one.
    #[inline]
    fn boundary(&self, run: &Run<'_>, length: u64) -> Option<FileBoundary> {
        let file = &self.finisher.file;
        let is_full = self.finisher.is_file_full(length);
        if !(is_full || file.has_end()) || !self.finisher.is_writing() {
            return None;
        }
        let stamp = run.next_stamp()?;
        let begins_period = stamp > file.until;
        (is_full || begins_period).then_some(FileBoundary {
            stamp,
            begins_period,
        })
    }

    /// Writes what is waiting, as far as it is worth it.
    pub(super) fn flush(&mut self) {
        self.write(&[], |output, _| output.flush());
    }

    /// Writes what has been waiting for too long.
    pub(super) fn flush_overdue(&mut self, now: MonoNs) {
        self.write(&[], |output, _| output.flush_overdue(now));
    }

    /// Writes everything that waits: the file goes on.
    pub(super) fn flush_all(&mut self) {
        self.write(&[], |output, _| output.append_all());
    }

    /// Writes everything that waits: the file ends, but for its statistics.
    pub(super) fn settle(&mut self) {
        self.write(&[], |output, _| output.settle());
    }

    fn write_in_place(&mut self, blocks: &[u8]) {
        if !blocks.is_empty() {
            self.write(blocks, Output::write);
        }
    }

    fn write(
        &mut self,
        blocks: &[u8],
        write: impl FnOnce(&mut Output, &[u8]) -> Result<(), OutputError>,
    ) {
        let is_any = !blocks.is_empty() || !self.output.is_written();
        let written = if is_any && self.output.watch().is_aborted() {
            Err(self.output.give_up(blocks))
        } else {
            write(&mut self.output, blocks)
        };
        if let Err(error) = written {
            self.write_failed(error);
        }
        if let Some(guard) = &mut self.guard {
            guard.rest();
        }
    }

    /// Counts the frames that a failed write has lost, and stops writing.
    pub(super) fn write_failed(&mut self, error: OutputError) {
        let reader_gone = error.is_reader_gone();
        self.finisher.unwrite(&error.lost, reader_gone);
        if error.is_aborted() {
            // The control task knows.
            return;
        }
        self.tell(if reader_gone {
            Event::ReaderGone
        } else {
            Event::WriteFailed {
                path: self.path.clone(),
                error: error.cause(),
            }
        });
    }

    fn tell_about(&self, progress: &RunProgress) {
        if progress.count_reached {
            self.tell(Event::CountReached);
        }
        if let Some(corrupt) = progress.corrupt {
            self.tell(Event::Corrupt(corrupt));
        }
    }

    pub(super) fn tell(&self, event: Event) {
        // The control task may be gone already when everything is being torn
        // down; then nobody is left to care.
        let _ = self.events.send(event);
    }
}
