//! Where the blocks go: a file, or a stream such as a pipe.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl};

use super::WriteWatch;
use crate::capturing::pcapng::WriteError;

/// How long to leave a full non-blocking pipe to its reader.
const FULL_PIPE: Duration = Duration::from_millis(1);
/// Written to a pipe at once: that it is taken shows that the reader goes on.
const PIPE_BYTES: usize = 64 * 1024;
/// Where in a file room is kept for the end: behind all that is ever written.
const FAR: i64 = 1 << 40;

/// The output, a stream of whole blocks.
pub struct Output {
    writer: Box<dyn Write + Send>,
    /// The file behind the writer, if it is one that can be truncated.
    regular: Option<File>,
    /// Where in the file the output begins.
    base: u64,
    /// Bytes written, always whole blocks.
    length: u64,
    /// Nothing but the output is in the file, and its end is the file's.
    is_alone: bool,
    /// Room kept for the end, bytes.
    reserve: u64,
    watch: Arc<WriteWatch>,
}

/// Why a file does not hold what was written.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The system says so, for instance of an earlier write on a network file system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has no name any more.
    #[error("it was removed meanwhile: what was written into it is gone")]
    Removed,
    /// Its length is not that of what was written.
    #[error(
        "another program changed it meanwhile: it has {found} bytes where {written} were written"
    )]
    Changed {
        /// Its length, bytes.
        found: u64,
        /// What it should be, bytes.
        written: u64,
    },
}

/// A write that failed.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct OutputError {
    /// How many of the bytes were written.
    pub written: usize,
    /// Why not more.
    pub source: io::Error,
}

impl OutputError {
    /// Whether the other end of a pipe is gone: the reader has had enough.
    pub fn is_reader_gone(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }

    /// The write was given up because it was told to.
    pub(super) fn aborted(written: usize) -> Self {
        let source = io::ErrorKind::Interrupted.into();
        Self { written, source }
    }

    /// Whether the write was given up because it was told to.
    pub fn is_aborted(&self) -> bool {
        self.source.kind() == io::ErrorKind::Interrupted
    }
}

impl From<WriteError> for OutputError {
    /// Nothing was written.
    fn from(error: WriteError) -> Self {
        let source = match error {
            WriteError::Encode(error) => io::Error::other(error),
            WriteError::Output(error) => error,
        };
        Self { written: 0, source }
    }
}

impl Output {
    /// A stream that can't be truncated, such as a pipe.
    pub fn stream(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            regular: None,
            base: 0,
            length: 0,
            is_alone: false,
            reserve: 0,
            watch: Arc::default(),
        }
    }

    /// A new, empty file, opened to be appended to.
    pub fn regular(file: File) -> io::Result<Self> {
        Ok(Self {
            regular: Some(file.try_clone()?),
            is_alone: true,
            ..Self::stream(file)
        })
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
        let regular = data.is_file().then(|| file.try_clone()).transpose()?;
        Ok(Self {
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

    /// What sees the writes.
    pub(super) fn watch(&self) -> &Arc<WriteWatch> {
        &self.watch
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

    /// The room kept for the end, bytes.
    pub(super) fn reserved(&self) -> u64 {
        self.reserve
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
    pub fn can_be_truncated(&self) -> bool {
        self.regular.is_some()
    }

    /// Bytes of whole blocks written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Writes blocks, all of them or up to an error. After an error
    /// [`Self::truncate_to`] says how much of them is to stay.
    pub fn write(&mut self, blocks: &[u8]) -> Result<(), OutputError> {
        let most = match self.regular {
            Some(_) => blocks.len(),
            None => PIPE_BYTES,
        };
        let mut written = 0;
        while written < blocks.len() {
            let end = blocks.len().min(written + most);
            match self.writer.write(&blocks[written..end]) {
                Ok(0) => {
                    let source = io::ErrorKind::WriteZero.into();
                    return Err(OutputError { written, source });
                }
                Ok(count) => {
                    written += count;
                    self.watch.wrote();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A pipe that somebody else has made non-blocking is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::park_timeout(FULL_PIPE);
                }
                Err(source) => return Err(OutputError { written, source }),
            }
            if written < blocks.len() && self.watch.is_aborted() {
                return Err(OutputError::aborted(written));
            }
        }
        self.length += written as u64;
        Ok(())
    }

    /// Writes the blocks that end a file, if need be into the room kept for them. After
    /// an error none of them is in a file; half of them may be in a pipe.
    pub fn write_final(&mut self, blocks: &[u8]) -> Result<(), OutputError> {
        let written = self.write(blocks).or_else(|error| {
            if self.reserve == 0 || error.is_reader_gone() {
                return Err(error);
            }
            self.truncate_after(&error)?;
            self.write(blocks)
        });
        written.or_else(|error| {
            self.truncate_after(&error)?;
            Err(error)
        })
    }

    fn truncate_after(&mut self, error: &OutputError) -> Result<(), OutputError> {
        let written = error.written;
        self.truncate_to(0)
            .map_err(|source| OutputError { written, source })
    }

    /// Whether the file has no name any more.
    pub(super) fn is_removed(&self) -> bool {
        let data = self.regular.as_ref().map(File::metadata);
        matches!(data, Some(Ok(data)) if data.nlink() == 0)
    }

    /// Ends the output.
    ///
    /// # Errors
    /// If the file does not hold what was written, or has no name.
    pub fn close(self) -> Result<(), CloseError> {
        let is_removed = self.is_removed();
        self.close_removed(is_removed)
    }

    /// Ends an output whose file had no name any more at some time, if it `is_removed`.
    pub(super) fn close_removed(self, is_removed: bool) -> Result<(), CloseError> {
        let intact = match is_removed {
            true => Err(CloseError::Removed),
            false => self.check_length(),
        };
        if self.reserve > 0
            && intact.is_ok()
            && let Some(file) = self.regular.as_ref().filter(|_| self.is_alone)
        {
            // What was kept for the end and not used.
            file.set_len(self.base + self.length)?;
        }
        // The first descriptor to close hears of an earlier write's error, and `writer`
        // is another one of the same file.
        let closed = self.regular.map_or(Ok(()), nix::unistd::close);
        drop(self.writer);
        closed.map_err(io::Error::from)?;
        intact
    }

    /// Whether the file has the length of what was written.
    fn check_length(&self) -> Result<(), CloseError> {
        let Some(file) = &self.regular else {
            return Ok(());
        };
        let (found, written) = (file.metadata()?.len(), self.base + self.length);
        match found < written || (self.is_alone && found > written) {
            true => Err(CloseError::Changed { found, written }),
            false => Ok(()),
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

    /// After a failed write: keeps `whole` bytes of what it wrote, which end
    /// with a block, and takes the rest off the file again.
    pub fn truncate_to(&mut self, whole: usize) -> io::Result<()> {
        self.length += whole as u64;
        if let Some(file) = &mut self.regular {
            file.set_len(self.base + self.length)?;
            let end = io::Seek::seek(file, io::SeekFrom::End(0))?;
            // Nothing else is written any more but what room was kept for.
            // Best effort: there may be no room even now.
            let _ = self.allocate(i64::try_from(end).unwrap_or(i64::MAX));
        }
        Ok(())
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
mod tests;
