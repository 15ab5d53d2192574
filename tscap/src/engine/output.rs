//! Where the blocks go: a file, or a stream such as a pipe.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// A file opened for writing but not touched yet: what it held is still there,
/// and a file made for this is removed again unless [`PreparedFile::start`] is
/// called.
#[derive(Debug)]
pub struct PreparedFile {
    file: Option<File>,
    path: PathBuf,
    is_new: bool,
}

impl PreparedFile {
    /// Opens or creates `path`. A named pipe that nobody reads is an error of
    /// the kind `NotConnected`: to wait for a reader here would be deaf to signals.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.exists();
        let is_fifo = path.metadata().is_ok_and(|data| data.file_type().is_fifo());
        let nonblocking = if is_fifo { libc::O_NONBLOCK } else { 0 };
        // Not truncated: a start that fails must not cost an older capture.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(nonblocking)
            .open(path);
        let file = match file {
            Err(error) if is_fifo && error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(io::ErrorKind::NotConnected.into());
            }
            file => file?,
        };
        if is_fifo {
            // The converter shall wait for its reader.
            fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
        }
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
            is_new,
        })
    }

    /// Empties the file and makes it the output.
    pub fn start(mut self) -> io::Result<Output> {
        let file = self.file.take().expect("taken here only");
        if !file.metadata()?.is_file() {
            return Ok(Output::stream(file));
        }
        file.set_len(0)?;
        Output::regular(file)
    }
}

impl Drop for PreparedFile {
    fn drop(&mut self) {
        let is_device = |file: &File| {
            file.metadata().is_ok_and(|data| {
                let kind = data.file_type();
                kind.is_char_device() || kind.is_block_device() || kind.is_fifo()
            })
        };
        if let Some(file) = &self.file
            && self.is_new
            && !is_device(file)
        {
            // Best effort: an empty file left behind is no capture.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// How long to leave a full non-blocking pipe to its reader.
const FULL_PIPE: Duration = Duration::from_millis(1);

/// The output, a stream of whole blocks.
pub struct Output {
    writer: Box<dyn Write + Send>,
    /// The file behind the writer, if it is one that can be truncated.
    regular: Option<File>,
    /// Where in the file the output begins.
    base: u64,
    /// Bytes written, always whole blocks.
    length: u64,
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
}

impl Output {
    /// A stream that can't be truncated, such as a pipe.
    pub fn stream(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            regular: None,
            base: 0,
            length: 0,
        }
    }

    /// A new, empty file.
    pub fn regular(file: File) -> io::Result<Self> {
        Ok(Self {
            writer: Box::new(file.try_clone()?),
            regular: Some(file),
            base: 0,
            length: 0,
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
        Ok(Self {
            writer: Box::new(file.try_clone()?),
            regular: data.is_file().then_some(file),
            base,
            length: 0,
        })
    }

    /// Whether a torn block can be taken off again.
    pub fn can_be_cut(&self) -> bool {
        self.regular.is_some()
    }

    /// Bytes of whole blocks written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Writes blocks, all of them or up to an error. After an error
    /// [`Self::cut`] says how much of them is to stay.
    pub fn write(&mut self, blocks: &[u8]) -> Result<(), OutputError> {
        let mut written = 0;
        while written < blocks.len() {
            match self.writer.write(&blocks[written..]) {
                Ok(0) => {
                    let source = io::ErrorKind::WriteZero.into();
                    return Err(OutputError { written, source });
                }
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A pipe that somebody else has made non-blocking is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::park_timeout(FULL_PIPE);
                }
                Err(source) => return Err(OutputError { written, source }),
            }
        }
        self.length += written as u64;
        Ok(())
    }

    /// Ends the output. On a network file system this may be where an error of
    /// an earlier write shows.
    pub fn close(self) -> io::Result<()> {
        // The first descriptor to close hears of it, and `writer` is another one of
        // the same file.
        let closed = self.regular.map_or(Ok(()), nix::unistd::close);
        drop(self.writer);
        Ok(closed?)
    }

    /// Device and inode of a regular file.
    pub fn id(&self) -> Option<(u64, u64)> {
        let data = self.regular.as_ref()?.metadata().ok()?;
        Some((data.dev(), data.ino()))
    }

    /// After a failed write: keeps `whole` bytes of what it wrote, which end
    /// with a block, and takes the rest off the file again.
    pub fn cut(&mut self, whole: usize) -> io::Result<()> {
        self.length += whole as u64;
        if let Some(file) = &mut self.regular {
            file.set_len(self.base + self.length)?;
            io::Seek::seek(file, io::SeekFrom::End(0))?;
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
mod tests {
    use super::*;

    /// A pipe that is full every other time.
    struct Stubborn {
        taken: Vec<u8>,
        is_full: bool,
        tell: std::sync::mpsc::Sender<Vec<u8>>,
    }

    impl Write for Stubborn {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_full = !self.is_full;
            if self.is_full {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let takes = bytes.len().min(7);
            self.taken.extend_from_slice(&bytes[..takes]);
            let _ = self.tell.send(self.taken.clone());
            Ok(takes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_inherited_file_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for appends in [false, true] {
            std::fs::write(&path, b"before").unwrap();
            let mut file = OpenOptions::new()
                .write(true)
                .append(appends)
                .open(&path)
                .unwrap();
            if !appends {
                io::Seek::seek(&mut file, io::SeekFrom::End(0)).unwrap();
            }
            let mut output = Output::inherited(file).unwrap();
            assert!(output.can_be_cut());
            output.write(b"whole").unwrap();
            OpenOptions::new()
                .append(true)
                .open(&path)
                .unwrap()
                .write_all(b"torn")
                .unwrap();
            output.cut(0).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"beforewhole");
        }
    }

    #[test]
    fn a_full_non_blocking_pipe_is_waited_for() {
        let (tell, told) = std::sync::mpsc::channel();
        let mut output = Output::stream(Stubborn {
            taken: Vec::new(),
            is_full: false,
            tell,
        });
        output.write(b"one block and another").unwrap();
        assert_eq!(told.try_iter().last().unwrap(), b"one block and another");
        assert_eq!(output.length(), 21);
    }
}
