//! Final blocks on their way to the output: straight from a ring, or by way of
//! a buffer where those of several rings come in one order.

use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::batch::{Batch, Taken};
use super::{Event, Output, OutputError};
use crate::capturing::clock::{Conversion, RawStamp};
use crate::capturing::ring::Run;

/// Blocks are converted and written in pieces of about this many bytes: large
/// enough for `write`, small enough that the producer soon gets the room back
/// and that the bytes are still in the cache when they are copied.
pub const PIECE_BYTES: usize = 512 * 1024;

/// The output with the conversion before it.
#[derive(Debug)]
pub(super) struct Pieces {
    pub batch: Batch,
    pub output: Output,
    /// Final blocks that wait to be written.
    copied: Vec<u8>,
    /// What the current file may hold.
    pub file: FileLimits,
    /// Its name, if it is one of several.
    pub path: Option<PathBuf>,
    events: UnboundedSender<Event>,
}

/// What the current file may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileLimits {
    /// No block once there are so many bytes.
    pub bytes: u64,
    /// No block stamped later.
    pub until: RawStamp,
}

impl FileLimits {
    pub const NONE: Self = Self {
        bytes: u64::MAX,
        until: RawStamp::NEVER,
    };
}

/// The next file is due, before a block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Stamp of the block.
    pub stamp: RawStamp,
    /// It is of another period than the current file.
    pub is_timed: bool,
}

/// What became of the next blocks of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// Length of the blocks, bytes.
    pub length: usize,
    /// No block is waiting to be written any more: all rings can be released.
    pub is_written: bool,
}

impl Pieces {
    pub(super) fn new(batch: Batch, output: Output, events: UnboundedSender<Event>) -> Self {
        Self {
            batch,
            output,
            copied: Vec::new(),
            file: FileLimits::NONE,
            path: None,
            events,
        }
    }

    /// Makes the next blocks of `run` final and writes them, or keeps them for
    /// [`Self::flush`]. They are written where they lie if the ring `is_alone`
    /// in having blocks. Takes none if the next file must begin first.
    #[inline]
    pub(super) fn take(
        &mut self,
        run: &mut Run<'_>,
        ring: usize,
        conversion: &Conversion,
        is_alone: bool,
    ) -> Result<Moved, Cut> {
        let length = self.output.length() + self.copied.len() as u64;
        if let Some(cut) = self.cut_before(run, length) {
            return Err(cut);
        }
        if self.batch.is_writing() {
            run.end_at(self.file.until);
        }
        let left = self.file.bytes.saturating_sub(length).max(1);
        let room = PIECE_BYTES - self.copied.len();
        let room = room.min(usize::try_from(left).unwrap_or(usize::MAX));
        let taken = self.batch.take(run, ring, conversion, room);
        let blocks = &run.bytes()[..taken.to_write];
        let in_place = is_alone && self.copied.is_empty();
        if in_place {
            self.write(blocks);
        } else {
            self.copied.extend_from_slice(blocks);
        }
        let is_full = self.copied.len() >= PIECE_BYTES;
        if is_full || taken.is_news() {
            self.flush();
            self.tell_about(&taken);
        }
        let length = match taken.corrupt {
            None => run.taken(),
            Some(_) => run.skip_to_head(),
        };
        Ok(Moved {
            length,
            is_written: in_place || is_full,
        })
    }

    /// Whether the next block belongs to the next file. `length` is that of the
    /// current one.
    #[inline]
    fn cut_before(&self, run: &Run<'_>, length: u64) -> Option<Cut> {
        let batch = &self.batch;
        let is_full = batch.is_file_full() || (length >= self.file.bytes && batch.has_begun_file());
        let is_timed = self.file.until != RawStamp::NEVER;
        if !(is_full || is_timed) || !batch.is_writing() {
            return None;
        }
        let stamp = run.next_stamp()?;
        let is_timed = stamp > self.file.until;
        (is_full || is_timed).then_some(Cut { stamp, is_timed })
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
        let whole = self.batch.unwrite(blocks, error.written, reader_gone);
        let cut = self.output.cut(whole);
        if error.is_aborted() {
            // The control task knows.
            return;
        }
        self.tell(if reader_gone {
            Event::ReaderGone
        } else {
            Event::WriteFailed {
                path: self.path.clone(),
                error: cut.err().unwrap_or(error.source),
            }
        });
    }

    fn tell_about(&self, taken: &Taken) {
        if taken.count_reached {
            self.tell(Event::CountReached);
        }
        if let Some(corrupt) = taken.corrupt {
            self.tell(Event::Corrupt(corrupt));
        }
    }

    pub(super) fn tell(&self, event: Event) {
        // The control task may be gone already when everything is being torn
        // down; then nobody is left to care.
        let _ = self.events.send(event);
    }
}
