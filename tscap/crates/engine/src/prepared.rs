//! A file before it becomes the output.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::{Io, Output};
use tscap_host::access::{MOST_LINKS, Owner, check_links, folder_of};

/// A file opened for writing but not touched yet: what it held is still there,
/// and a file made for this is removed again unless [`PreparedFile::start`] is
/// called. It is locked against other captures.
#[derive(Debug)]
pub struct PreparedFile {
    file: File,
    /// The name of a file made for this.
    created: Option<NewName>,
    /// The folder of that, if it may be opened: later it may not.
    folder: Option<File>,
}

/// The name of a file that was made for a capture. It is removed unless it is kept.
#[derive(Debug)]
pub struct NewName {
    /// Where the file is, with symbolic links followed.
    path: PathBuf,
    /// Device and inode of the file.
    id: (u64, u64),
}

impl PreparedFile {
    /// Opens or creates `path`; a new file is its owner's alone. A named pipe that
    /// nobody reads is an error of the kind `NotConnected`: to wait for a reader here
    /// would be deaf to signals. A file that another capture writes is one of the kind
    /// `ResourceBusy`.
    pub fn open(path: &Path) -> io::Result<Self> {
        check_links(path)?;
        let path = &end_of_links(path);
        let is_fifo = path.metadata().is_ok_and(|data| data.file_type().is_fifo());
        let nonblocking = if is_fifo { libc::O_NONBLOCK } else { 0 };
        // Not truncated: a start that fails must not cost an older capture. Appended to:
        // what others add or cut off then shows in the length.
        let mut options = OpenOptions::new();
        options.append(true).mode(0o600).custom_flags(nonblocking);
        let mut new = options.clone();
        // A file that somebody else makes meanwhile is theirs. What is new may be read again.
        let (file, is_new) = match new.read(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.open(path), false)
            }
            made => (made, true),
        };
        let file = match file {
            Err(error) if is_fifo && error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(io::ErrorKind::NotConnected.into());
            }
            file => file?,
        };
        let created = is_new.then(|| NewName::of(path, &file)).transpose()?;
        if is_fifo {
            // The converter shall wait for its reader.
            fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
        }
        if file.metadata()?.is_file() {
            lock(&file)?;
        }
        let folder = created.as_ref().map(|it| folder_of(&it.path));
        Ok(Self {
            file,
            folder: folder.and_then(|it| File::open(it).ok()),
            created,
        })
    }

    /// The name of a file made for this, which is removed when this is dropped and not kept:
    /// until the capture runs.
    pub fn take_new_name(&mut self) -> Option<NewName> {
        self.created.take()
    }

    /// Gives a file made for this to `owner`; one that was there stays whose it was.
    pub fn give_to(&self, owner: Owner) -> io::Result<()> {
        match &self.created {
            Some(_) => owner.take(&self.file),
            None => Ok(()),
        }
    }

    /// Empties the file and makes it the output, written by `io`.
    ///
    /// # Errors
    /// Of the kind `Unsupported` if it can't be written direct and has to be.
    pub fn start(mut self, io: Io) -> io::Result<Output> {
        let output = match (self.file.metadata()?.is_file(), io) {
            (true, _) => {
                self.file.set_len(0)?;
                let output = Output::regular(self.file, io)?;
                output.named_in(self.folder);
                output
            }
            (false, Io::Direct) => return Err(io::ErrorKind::Unsupported.into()),
            (false, Io::Auto | Io::Buffered) => Output::stream(self.file),
        };
        if let Some(created) = self.created.take() {
            created.keep();
        }
        Ok(output)
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

/// Where links lead, as far as they do: the last one may be of a file that is not there yet.
fn end_of_links(path: &Path) -> PathBuf {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_symlink());
    let mut end = path.to_owned();
    for _ in 0..MOST_LINKS {
        // What is there is opened as it is: links of procfs lead where no path does.
        if end.exists() || !is_link(&end) {
            break;
        }
        match fs::read_link(&end) {
            Ok(next) => end = folder_of(&end).join(next),
            Err(_) => break,
        }
    }
    end
}

impl NewName {
    fn of(path: &Path, file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Self {
            path: fs::canonicalize(path)?,
            id: (data.dev(), data.ino()),
        })
    }

    /// Keeps the file, which would be removed when this is dropped.
    pub fn keep(mut self) {
        self.path.clear();
    }
}

impl Drop for NewName {
    fn drop(&mut self) {
        let there = fs::symlink_metadata(&self.path);
        if there.is_ok_and(|there| (there.dev(), there.ino()) == self.id) {
            // Best effort: an empty file left behind is no capture.
            let _ = fs::remove_file(&self.path);
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

    #[test]
    fn a_name_that_is_not_kept_is_removed_while_it_is_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let started = || {
            let mut prepared = PreparedFile::open(&path).unwrap();
            let name = prepared.take_new_name();
            drop(prepared.start(Io::Auto).unwrap());
            name
        };
        drop(started().expect("a new one"));
        assert!(!path.exists());
        started().expect("a new one").keep();
        assert!(path.exists());
        assert!(started().is_none() && path.exists(), "it was there");
        fs::remove_file(&path).unwrap();
        let name = started();
        fs::rename(&path, folder.path().join("moved")).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        drop(name);
        assert!(path.exists());
    }

    #[test]
    fn links_lead_where_they_do_or_would() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (link, to) in [("a", "b"), ("b", "file"), ("x", "y"), ("y", "x")] {
            std::os::unix::fs::symlink(to, path(link)).unwrap();
        }
        assert_eq!(end_of_links(&path("a")), path("file"));
        assert!(PreparedFile::open(&path("x")).is_err());
        fs::write(path("file"), "").unwrap();
        assert_eq!(end_of_links(&path("a")), path("a"));
        assert_eq!(
            end_of_links(Path::new("/proc/self/fd/0")),
            Path::new("/proc/self/fd/0")
        );
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
        let flags = fcntl(&opened.file, FcntlArg::F_GETFL).unwrap();
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
