//! Where the blocks go: a file, or a stream such as a pipe.

mod bearing;
mod direct;
mod ending;
mod error;
mod extent;
mod pace;
mod waiting;
mod writeback;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl};

use self::bearing::{Bearing, Pauses};
use self::direct::Direct;
pub use self::error::{CloseError, OutputError};
use self::extent::Extent;
use self::waiting::Waiting;
use self::writeback::{News, Writeback};
use super::WriteWatch;
use tscap_clock::MonoNs;
use tscap_file::pcapng;
use tscap_host::direct_io::{self, WriteMode};

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
    /// A stream that can't be truncated, such as a pipe.
    pub fn stream(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            regular: None,
            io: Io::Buffered,
            direct: None,
            base: 0,
            length: 0,
            written: 0,
            written_direct: 0,
            writeback: None,
            news: None,
            bearing: None,
            has_failed: false,
            direct_piece: direct::PIECE_BYTES,
            waiting: Waiting::default(),
            next_address: 0,
            is_alone: false,
            reserve: 0,
            changed: None,
            watch: Arc::default(),
        }
    }

    /// A new, empty file, opened to be appended to.
    ///
    /// # Errors
    /// Of the kind `Unsupported` if it can't be written direct and has to be.
    pub fn regular(file: File, io: Io) -> io::Result<Self> {
        let alignment = match io {
            Io::Buffered => None,
            Io::Auto | Io::Direct => direct_io::alignment(&file),
        };
        if io == Io::Direct && alignment.is_none() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let gives_back = alignment.is_some();
        Ok(Self {
            regular: Some(file.try_clone()?),
            writeback: Some(Arc::new(Writeback::new(file.try_clone()?, gives_back))),
            io,
            direct: alignment.map(Direct::new),
            is_alone: true,
            ..Self::stream(file)
        })
    }

    /// A new, empty file that is written direct, whatever the file system says.
    #[cfg(test)]
    pub(super) fn direct(file: File) -> Self {
        let alignment = direct_io::alignment(&file);
        let alignment = alignment.unwrap_or(direct_io::Alignment { memory: 512 });
        Self {
            direct: Some(Direct::new(alignment)),
            ..Self::regular(file, Io::Auto).expect("a file")
        }
    }

    /// Its bytes go to this disk as well, which says whether it has them.
    #[cfg(test)]
    pub(super) fn with_disk(mut self, disk: ScriptedDisk) -> Self {
        self.writeback = Some(Arc::new(Writeback::new(disk, false)));
        self
    }

    /// Its disk pauses for so long, as far as is known.
    #[cfg(test)]
    pub(super) fn expect_pauses(&mut self, longest: Duration) {
        let (pauses, now) = (Arc::<Pauses>::default(), std::time::Instant::now());
        let shown = Duration::from_secs(60);
        pauses.observed(shown);
        pauses.took(longest, now);
        self.bearing = Some(Bearing::new(pauses));
    }

    /// A descriptor that somebody else opened, such as standard output. If it is a
    /// file, what stands before its position (or its end, if it is appended to)
    /// stays.
    pub fn inherited(mut file: File) -> io::Result<Self> {
        let data = file.metadata()?;
        let flags = OFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GETFL)?);
        let base = match (data.is_file(), flags.contains(OFlag::O_APPEND)) {
            (false, _) => 0,
            (true, true) => data.len(),
            (true, false) => io::Seek::stream_position(&mut file)?,
        };
        let copy = || data.is_file().then(|| file.try_clone()).transpose();
        let (regular, disk) = (copy()?, copy()?);
        Ok(Self {
            writeback: disk.map(|disk| Arc::new(Writeback::new(disk, false))),
            is_alone: regular.is_some() && data.len() == base,
            regular,
            base,
            ..Self::stream(file)
        })
    }

    /// Lets `watch` see the writes, and end them.
    #[must_use]
    pub fn watched(mut self, watch: Arc<WriteWatch>) -> Self {
        self.watch = watch;
        self
    }

    /// Has the file and those that follow it written out by a thread from here on.
    ///
    /// # Errors
    /// If there can't be another thread.
    pub fn written_out(mut self) -> io::Result<Self> {
        if self.writeback.is_some() {
            let pauses = Arc::<Pauses>::default();
            self.news = Some(writeback::start(Arc::clone(&pauses))?);
            self.bearing = Some(Bearing::new(pauses));
            self.tell_news();
        }
        Ok(self)
    }

    fn tell_news(&self) {
        if let (Some(news), Some(writeback)) = (&self.news, &self.writeback) {
            // The thread takes them for as long as there is this end.
            let _ = news.send(Arc::clone(writeback));
        }
    }

    /// The file has got its name in this folder, which is to be on the disk too.
    pub(super) fn named_in(&self, folder: Option<File>) {
        if let Some(writeback) = &self.writeback {
            writeback.named_in(folder);
            self.tell_news();
        }
    }

    /// Whether there is a disk that is to have what is written.
    pub(crate) fn has_disk(&self) -> bool {
        let file = self.regular.as_ref();
        file.is_some_and(|file| direct_io::is_in_memory(file) != Some(true))
    }

    /// Fits the pieces to rings of so many bytes, and takes the memory for one.
    #[must_use]
    pub(super) fn out_of_rings(mut self, ring_bytes: usize) -> Self {
        self.direct_piece = direct::piece_of(ring_bytes);
        if let Some(bearing) = &mut self.bearing {
            bearing.ring_bytes = ring_bytes as u64;
        }
        self.waiting.reserve(self.piece() + BESIDE_PIECE_BYTES);
        self
    }

    /// What sees the writes.
    pub(super) fn watch(&self) -> &Arc<WriteWatch> {
        &self.watch
    }

    /// The file that follows this one, which is [settled](Self::settle), as it is to be written:
    /// `file` is new and empty.
    pub(super) fn successor(&mut self, file: File) -> io::Result<Self> {
        let mut next = Self::regular(file, self.io)?.watched(Arc::clone(&self.watch));
        next.next_address = self.next_address;
        next.written_direct = self.written_direct;
        next.direct_piece = self.direct_piece;
        next.news = self.news.take();
        next.bearing = self.bearing.take();
        next.reserve(self.reserve)?;
        next.waiting = std::mem::take(&mut self.waiting);
        next.waiting.restart(0);
        self.waiting.restart(self.length);
        Ok(next)
    }

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

    /// Takes off a file what is behind `whole`.
    fn cut_at(&mut self, whole: u64) -> io::Result<()> {
        if let Some(file) = &mut self.regular {
            if self.direct.is_some() {
                direct_io::set(file, WriteMode::Appended)?;
            }
            file.set_len(self.base + whole)?;
            let end = io::Seek::seek(file, io::SeekFrom::End(0))?;
            // Nothing else is written any more but what room was kept for.
            // Best effort: there may be no room even now.
            let _ = self.allocate(i64::try_from(end).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Whether the file has no name any more.
    pub(super) fn is_removed(&self) -> bool {
        let data = self.regular.as_ref().map(File::metadata);
        matches!(data, Some(Ok(data)) if data.nlink() == 0)
    }

    /// Ends the output, which is [settled](Self::settle), and waits until the disk has it.
    ///
    /// # Errors
    /// If the file does not hold what was written, or has no name, or may not be on the disk.
    pub fn close(self) -> Result<(), CloseError> {
        let is_removed = self.is_removed();
        self.close_removed(is_removed)
    }

    /// Ends an output whose file had no name any more at some time, if it `is_removed`.
    pub(super) fn close_removed(self, is_removed: bool) -> Result<(), CloseError> {
        let intact = if is_removed {
            Err(CloseError::Removed)
        } else {
            self.check_length()
        };
        if self.reserve > 0
            && intact.is_ok()
            && let Some(file) = self.regular.as_ref().filter(|_| self.is_alone)
        {
            // What was kept for the end and not used.
            file.set_len(self.base + self.length)?;
        }
        // What nobody can find any more needs no disk.
        let writeback = self.writeback.as_ref().filter(|_| !self.is_removed());
        let synced = writeback.map_or(Ok(()), |it| it.finish(&self.watch));
        let ended = match (&self.regular, self.has_failed && intact.is_ok()) {
            (Some(file), true) => ending::check(file, self.base),
            _ => Ok(()),
        };
        // The thread may hold the file for a moment more.
        self.unlock();
        // The first descriptor to close hears of an earlier write's error, and `writer`
        // is another one of the same file.
        let closed = self.regular.map_or(Ok(()), nix::unistd::close);
        drop(self.writer);
        closed.map_err(io::Error::from)?;
        intact.and(synced).and(ended)
    }

    /// Whether the file has the length of what was written, and had it before.
    fn check_length(&self) -> Result<(), CloseError> {
        let Some(file) = &self.regular else {
            return Ok(());
        };
        let now = (file.metadata()?.len(), self.base + self.length);
        let (found, written) = self.changed.unwrap_or(now);
        if found < written || (self.is_alone && found > written) {
            Err(CloseError::Changed { found, written })
        } else {
            Ok(())
        }
    }

    /// Lets other captures take the file over.
    pub(super) fn unlock(&self) {
        // Best effort: it is unlocked when it is closed.
        let _ = self.regular.as_ref().map(File::unlock);
    }

    /// Device and inode of a regular file.
    pub fn id(&self) -> Option<(u64, u64)> {
        let data = self.regular.as_ref()?.metadata().ok()?;
        Some((data.dev(), data.ino()))
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
