//! A file before it becomes the output.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::{Io, Output};
use crate::capturing::host::access::Owner;

/// A file opened for writing but not touched yet: what it held is still there,
/// and a file made for this is removed again unless [`PreparedFile::start`] is
/// called. It is locked against other captures.
#[derive(Debug)]
pub struct PreparedFile {
    file: Option<File>,
    /// The file made for this, links followed.
    created: Option<PathBuf>,
}

impl PreparedFile {
    /// Opens or creates `path`; a new file is its owner's alone. A named pipe that
    /// nobody reads is an error of the kind `NotConnected`: to wait for a reader here
    /// would be deaf to signals. A file that another capture writes is one of the kind
    /// `ResourceBusy`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.exists();
        let is_fifo = path.metadata().is_ok_and(|data| data.file_type().is_fifo());
        let nonblocking = if is_fifo { libc::O_NONBLOCK } else { 0 };
        // Not truncated: a start that fails must not cost an older capture. Appended to:
        // what others add or cut off then shows in the length.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
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
        if file.metadata()?.is_file() {
            lock(&file)?;
        }
        let created = is_new.then(|| fs::canonicalize(path)).transpose()?;
        Ok(Self {
            file: Some(file),
            created,
        })
    }

    /// Gives a file made for this to `owner`; one that was there stays whose it was.
    pub fn give_to(&self, owner: Owner) -> io::Result<()> {
        match (&self.file, &self.created) {
            (Some(file), Some(_)) => owner.take(file),
            _ => Ok(()),
        }
    }

    /// Empties the file and makes it the output, written by `io`.
    ///
    /// # Errors
    /// Of the kind `Unsupported` if it can't be written direct and has to be.
    pub fn start(mut self, io: Io) -> io::Result<Output> {
        let file = self.file.take().expect("taken here only");
        match (file.metadata()?.is_file(), io) {
            (true, _) => {
                file.set_len(0)?;
                Output::regular(file, io)
            }
            (false, Io::Direct) => Err(io::ErrorKind::Unsupported.into()),
            (false, Io::Auto | Io::Buffered) => Ok(Output::stream(file)),
        }
    }
}

/// Keeps other captures from a file for as long as it is open. Nobody is kept away where
/// the file system has no locks.
///
/// # Errors
/// Of the kind `ResourceBusy` if another capture has it.
pub(super) fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another capture is writing it",
        )),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl Drop for PreparedFile {
    fn drop(&mut self) {
        let id = |data: fs::Metadata| (data.dev(), data.ino());
        if let (Some(file), Some(path)) = (&self.file, &self.created)
            && let (Ok(own), Ok(there)) = (file.metadata(), fs::symlink_metadata(path))
            && id(own) == id(there)
        {
            // Best effort: an empty file left behind is no capture.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_not_started_leaves_nothing_but_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let [link, file] = ["link", "file"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("file", &link).unwrap();
        let prepared = PreparedFile::open(&link).unwrap();
        assert_eq!(mode(&file), 0o600);
        drop(prepared);
        assert!(link.is_symlink() && !file.exists());
        fs::write(&file, "older").unwrap();
        drop(PreparedFile::open(&link).unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"older");
        PreparedFile::open(&link).unwrap().start(Io::Auto).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"", "it begins empty");
    }

    /// A reader of a named pipe, who waits for no writer.
    fn reader(pipe: &Path) -> File {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        options.open(pipe).unwrap()
    }

    #[test]
    fn only_a_pipe_without_a_reader_is_said_to_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, socket, missing] =
            ["pipe", "socket", "missing/out"].map(|name| folder.path().join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let kind = |path| PreparedFile::open(path).unwrap_err().kind();
        assert_eq!(kind(&pipe), io::ErrorKind::NotConnected);
        // The same error of the system, and another one.
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_ne!(kind(&socket), io::ErrorKind::NotConnected);
        assert_eq!(kind(&missing), io::ErrorKind::NotFound);
        let _reader = reader(&pipe);
        let opened = PreparedFile::open(&pipe).unwrap();
        let flags = fcntl(opened.file.as_ref().unwrap(), FcntlArg::F_GETFL).unwrap();
        assert!(!OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK));
    }

    #[test]
    fn an_existing_mode_is_kept() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        fs::set_permissions(&path, everybody).unwrap();
        PreparedFile::open(&path).unwrap().start(Io::Auto).unwrap();
        assert_eq!(mode(&path), 0o644);
    }

    #[test]
    fn a_file_has_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = PreparedFile::open(&path).unwrap().start(Io::Auto).unwrap();
        let second = PreparedFile::open(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::ResourceBusy);
        assert!(path.exists(), "the first one's");
        output.close().unwrap();
        PreparedFile::open(&path).unwrap();
        // What is no file has any number: here a pipe, since a mistake could remove a device.
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _reader = reader(&pipe);
        let writers = [(); 2].map(|()| PreparedFile::open(&pipe));
        assert!(writers.iter().all(Result::is_ok));
    }
}
