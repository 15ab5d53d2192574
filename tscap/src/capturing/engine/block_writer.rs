//! Finished blocks on their way to the output: straight from a ring, or by way of
//! a buffer where those of several rings come in one order.

use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::block_finisher::{BlockFinisher, RunProgress};
use super::file_room::FileBoundary;
use super::{Event, Output, OutputError};
use crate::capturing::clock::Conversion;
use crate::capturing::ring::Run;

/// Blocks are converted and written in pieces of about this many bytes: large
/// enough for `write`, small enough that the producer soon gets the room back
/// and that the bytes are still in the cache when they are copied.
pub const PIECE_BYTES: usize = 512 * 1024;

/// Writes blocks to the output once they are finished.
#[derive(Debug)]
pub(super) struct BlockWriter {
    pub finisher: BlockFinisher,
    pub output: Output,
    /// Finished blocks that wait to be written.
    copied: Vec<u8>,
    /// Name of the current file, if it is one of several.
    pub path: Option<PathBuf>,
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
            copied: Vec::new(),
            path: None,
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
        let length = self.output.length() + self.copied.len() as u64;
        if let Some(boundary) = self.boundary(run, length) {
            return Step::Boundary(boundary);
        }
        let file = self.finisher.file;
        if self.finisher.is_writing() {
            run.end_at(file.until);
        }
        let left = file.bytes.saturating_sub(length).max(1);
        let room = PIECE_BYTES - self.copied.len();
        let room = room.min(usize::try_from(left).unwrap_or(usize::MAX));
        let progress = self.finisher.finish(run, ring, conversion, room);
        let blocks = &run.bytes()[..progress.to_write];
        let in_place = is_alone && self.copied.is_empty();
        if in_place {
            self.write(blocks);
        } else {
            self.copied.extend_from_slice(blocks);
        }
        let is_full = self.copied.len() >= PIECE_BYTES;
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

    /// Writes what is waiting.
    pub(super) fn flush(&mut self) {
        let mut copied = std::mem::take(&mut self.copied);
        self.write(&copied);
        copied.clear();
        self.copied = copied;
    }

    fn write(&mut self, blocks: &[u8]) {
        if blocks.is_empty() {
            return;
        }
        let written = match self.output.watch().is_aborted() {
            true => Err(OutputError::aborted(0)),
            false => self.output.write(blocks),
        };
        if let Err(error) = written {
            self.write_failed(blocks, error);
        }
    }

    /// Keeps the whole blocks of a failed write and stops writing.
    pub(super) fn write_failed(&mut self, blocks: &[u8], error: OutputError) {
        let reader_gone = error.is_reader_gone();
        let whole = self.finisher.unwrite(blocks, error.written, reader_gone);
        let truncated = self.output.truncate_to(whole);
        if error.is_aborted() {
            // The control task knows.
            return;
        }
        self.tell(if reader_gone {
            Event::ReaderGone
        } else {
            Event::WriteFailed {
                path: self.path.clone(),
                error: truncated.err().unwrap_or(error.source),
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
