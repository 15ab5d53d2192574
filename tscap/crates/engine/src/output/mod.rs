//! Where the blocks go: a file, or a stream such as a pipe.

mod bearing;
mod closing;
mod direct;
mod ending;
mod error;
mod extent;
mod opening;
mod pace;
mod waiting;
mod writeback;

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};

use self::bearing::Bearing;
use self::direct::Direct;
pub use self::error::{CloseError, OutputError};
use self::extent::Extent;
use self::waiting::Waiting;
use self::writeback::{News, Writeback};
use super::WriteWatch;
use tscap_clock::MonoNs;
use tscap_file::pcapng;

/// How long to leave a full non-blocking pipe to its reader.
const FULL_PIPE: Duration = Duration::from_millis(1);
/// Written to a pipe at once: that it is taken shows that the reader goes on.
const PIPE_BYTES: usize = 64 * 1024;
/// Where in a file room is kept for the end: behind all that is ever written.
const FAR: i64 = 1 << 40;
/// Blocks are written in pieces of about this many bytes: large enough for `write`, small
/// enough that the producer soon gets the room back and that the bytes are still in the
/// cache when they are copied.
pub const PIECE_BYTES: usize = 512 * 1024;

/// What may wait besides a piece, bytes: the block of a frame that begins in it, statistics.
const BESIDE_PIECE_BYTES: usize = 512 * 1024;

/// How a file is to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Io {
    /// Direct where the file system can; by way of the page cache where it can't, and while
    /// the disk is too slow
    #[default]
    Auto,
    /// Past the page cache, from the rings to the disk
    Direct,
    /// By way of the page cache
    Buffered,
}

/// The output, a stream of whole blocks.
pub struct Output {
    writer: Box<dyn Write + Send>,
    /// The file behind the writer, if it is one that can be truncated.
    regular: Option<File>,
    /// How the file is to be written.
    io: Io,
    /// If the file is written past the page cache.
    direct: Option<Direct>,
    /// Where in the file the output begins.
    base: u64,
    /// Bytes of the output, always whole blocks.
    length: u64,
    /// Of them, those that are written.
    written: u64,
    /// Bytes written direct, in files before this one too.
    written_direct: u64,
    /// If it is a file: how far the disk has what went by way of the page cache.
    writeback: Option<Arc<Writeback>>,
    /// The thread that writes it out.
    news: Option<News>,
    /// Of a file that is written out by a thread: what the rings bear of its disk.
    bearing: Option<Bearing>,
    /// A write has failed.
    has_failed: bool,
    /// Longest piece that is written direct, bytes.
    direct_piece: usize,
    /// Those that are not written, and before them, in a file that is written direct, the written
    /// ones of the same [block of a disk](direct_io::BLOCK).
    waiting: Waiting,
    /// Where the block is likely to lie in memory that the next frames of a ring begin with.
    next_address: usize,
    /// Nothing but the output is in the file, and its end is the file's.
    is_alone: bool,
    /// Room kept for the end, bytes.
    reserve: u64,
    /// The first length that the file was found with and should not have, and the one that it
    /// should have, bytes.
    changed: Option<(u64, u64)>,
    watch: Arc<WriteWatch>,
}

impl Output {
    /// How it is written: "direct", "buffered" by way of the page cache, or "stream".
    pub fn way(&self) -> &'static str {
        match (&self.regular, &self.direct) {
            (None, _) => "stream",
            (Some(_), None) => "buffered",
            (Some(_), Some(_)) => "direct",
        }
    }

    /// Bytes that were written past the page cache, also to files before this one.
    pub fn written_direct(&self) -> u64 {
        self.written_direct
    }

    /// Keeps so many bytes of the disk free for [`Self::write_final`], where the file
    /// system can.
    ///
    /// # Errors
    /// If there is no room for them.
    pub fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        self.reserve = bytes;
        match self.allocate(FAR) {
            Err(error @ (Errno::ENOSPC | Errno::EDQUOT)) => Err(error.into()),
            // Another error is that of a file system that can't.
            _ => Ok(()),
        }
    }

    fn allocate(&self, at: i64) -> nix::Result<()> {
        match (&self.regular, i64::try_from(self.reserve)) {
            (Some(file), Ok(bytes @ 1..)) if self.is_alone => {
                fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, at, bytes)
            }
            _ => Ok(()),
        }
    }

    /// Whether a torn block can be taken off again.
    pub(crate) fn can_be_truncated(&self) -> bool {
        self.regular.is_some()
    }

    /// Bytes of whole blocks so far, also those that wait.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the next frames of the ring that was written last are where they can be
    /// written from.
    #[cfg(test)]
    pub(super) fn is_next_aligned(&self) -> bool {
        let direct = self.direct.as_ref();
        direct.is_some_and(|direct| direct.padding(self.length, self.next_address) == 0)
    }

    /// About how many bytes are to be taken at once.
    #[inline]
    pub fn piece(&self) -> usize {
        match &self.direct {
            Some(direct) if !direct.spills => self.direct_piece,
            _ => PIECE_BYTES,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_written(&self) -> bool {
        self.written == self.length
    }

    /// Bytes that wait.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether blocks may be written from where they lie, without waiting behind others.
    #[inline]
    pub(super) fn takes_in_place(&self) -> bool {
        self.direct.is_some() || self.waiting.is_empty()
    }

    /// What the fullest ring holds now, bytes.
    pub(super) fn rings_hold(&mut self, fill: u64) {
        if let Some(bearing) = &mut self.bearing {
            bearing.fill = fill;
        }
    }

    /// How long the disk has taken for a write at most, and the bytes that went by way of the page
    /// cache because rings would not have borne that, also in files before this one.
    pub(super) fn pauses(&self) -> (Duration, u64) {
        let bearing = self.bearing.as_ref();
        bearing.map_or_else(Default::default, |it| (it.pauses.greatest(), it.spilled))
    }

    /// Frames pile up in the rings, or no longer.
    pub fn set_behind(&mut self, is_behind: bool) {
        if let Some(direct) = &mut self.direct {
            direct.is_behind = is_behind;
        }
    }

    /// Writes blocks from where they lie, and those that wait before them. Of a file that is
    /// written direct the last ones may wait.
    pub fn write(&mut self, blocks: &[u8]) -> Result<(), OutputError> {
        let begin = self.length;
        self.length += blocks.len() as u64;
        self.next_address = blocks.as_ptr().addr().wrapping_add(blocks.len());
        let written = if self.direct.is_some() {
            self.write_direct(blocks)
        } else {
            self.append_after_waiting(blocks)
        };
        written.map_err(|source| self.failed(source, begin, blocks))
    }

    /// Writes the blocks that a file begins with, at once.
    pub fn write_headers(&mut self, blocks: Vec<u8>) -> Result<(), OutputError> {
        let blocks = self.padded(blocks);
        self.copy(&blocks);
        self.append_all()
    }

    /// Writes blocks that are of no ring.
    pub(super) fn write_between(&mut self, blocks: Vec<u8>) -> Result<(), OutputError> {
        let blocks = self.padded(blocks);
        self.copy(&blocks);
        self.flush()
    }

    /// The blocks with padding, so that frames behind them can be written direct from their
    /// ring.
    fn padded(&self, blocks: Vec<u8>) -> Vec<u8> {
        match &self.direct {
            Some(direct) => {
                let end = self.length + blocks.len() as u64;
                pcapng::padded(blocks, direct.padding(end, self.next_address))
            }
            None => blocks,
        }
    }

    /// Copies blocks, which are written by the next [`Self::flush`] or later.
    pub(super) fn copy(&mut self, blocks: &[u8]) {
        self.length += blocks.len() as u64;
        self.waiting.extend(blocks);
    }

    /// Writes the blocks that wait; of a file that is written direct, when they are worth it.
    pub(super) fn flush(&mut self) -> Result<(), OutputError> {
        let flushed = if self.direct.is_some() {
            self.write_direct(&[])
        } else {
            self.append_waiting()
        };
        flushed.map_err(|source| self.failed(source, self.length, &[]))
    }

    /// Writes what has been waiting for too long by `now`; an error too if the disk did not take
    /// what was written before.
    pub(super) fn flush_overdue(&mut self, now: MonoNs) -> Result<(), OutputError> {
        if let Some(error) = self.disk_error() {
            return Err(self.failed(error, self.length, &[]));
        }
        let (written, length) = (self.written, self.length);
        let direct = self.direct.as_mut();
        if direct.is_some_and(|it| it.is_overdue(written, length, now)) {
            self.append_all()
        } else {
            Ok(())
        }
    }

    /// Why the disk did not take what was written before.
    fn disk_error(&self) -> Option<io::Error> {
        let writeback = self.writeback.as_ref().filter(|_| !self.has_failed)?;
        writeback.has_failed().then(|| writeback.error())?
    }

    /// Writes everything that waits. What follows goes by way of the page cache.
    pub fn settle(&mut self) -> Result<(), OutputError> {
        self.append_all()?;
        self.direct = None;
        self.waiting.restart(self.length);
        Ok(())
    }

    /// Writes everything that waits.
    pub(super) fn append_all(&mut self) -> Result<(), OutputError> {
        let appended = if self.direct.is_some() {
            self.append_direct(&[])
        } else {
            self.append_waiting()
        };
        appended.map_err(|source| self.failed(source, self.length, &[]))
    }

    /// Gives up what waits and `blocks`, because it was told to.
    pub(super) fn give_up(&mut self, blocks: &[u8]) -> OutputError {
        let source = io::ErrorKind::Interrupted.into();
        self.failed(source, self.length, blocks)
    }

    /// Writes the blocks that end a file, which is [settled](Self::settle), if need be into
    /// the room kept for them. After an error none of them is in a file; half of them may be
    /// in a pipe.
    pub(crate) fn write_final(&mut self, blocks: &[u8]) -> Result<(), OutputError> {
        self.write(blocks).or_else(|error| {
            if self.reserve == 0 || error.is_reader_gone() || error.torn.is_some() {
                return Err(error);
            }
            self.write(blocks)
        })
    }

    fn append_after_waiting(&mut self, blocks: &[u8]) -> io::Result<()> {
        self.append_waiting()?;
        self.append(blocks)?;
        self.waiting.restart(self.written);
        Ok(())
    }

    /// Appends what waits.
    fn append_waiting(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let appended = self.append(&waiting);
        self.waiting = waiting;
        appended?;
        self.waiting.restart(self.written);
        Ok(())
    }

    /// Writes bytes to the end of the output.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let most = match self.regular {
            Some(_) => bytes.len(),
            None => PIPE_BYTES,
        };
        let mut left = bytes;
        while !left.is_empty() {
            match self.writer.write(&left[..left.len().min(most)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.appended(count as u64);
                    left = &left[count..];
                    self.watch.wrote();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A pipe that somebody else has made non-blocking is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::park_timeout(FULL_PIPE);
                }
                Err(error) => return Err(error),
            }
            if !left.is_empty() && self.watch.is_aborted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }

    /// So many bytes more are written by way of the page cache.
    fn appended(&mut self, count: u64) {
        let begin = self.base + self.written;
        self.written += count;
        let writeback = self.writeback.as_ref();
        if writeback.is_some_and(|it| it.appended(begin..begin + count)) {
            self.tell_news();
        }
    }

    /// The blocks that wait and those that are to follow at `begin`, by where they are.
    fn extent<'a>(&'a self, begin: u64, blocks: &'a [u8]) -> Extent<'a> {
        let torn = self.direct.as_ref().and_then(|direct| direct.torn);
        Extent::new(torn, (self.waiting.at, &self.waiting), (begin, blocks))
    }

    /// Ends a file with its last whole block after a write has failed: that of `blocks`, which
    /// begin at `begin`, or of those that wait before them.
    fn failed(&mut self, source: io::Error, begin: u64, blocks: &[u8]) -> OutputError {
        let (whole, lost) = self.extent(begin, blocks).cut_at(self.written);
        let torn = self.cut_at(whole).err();
        self.has_failed = true;
        self.direct = None;
        self.waiting.restart(whole);
        (self.length, self.written) = (whole, whole);
        OutputError { lost, source, torn }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("regular", &self.regular)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) use self::writeback::tests::ScriptedDisk;

#[cfg(test)]
mod tests;
