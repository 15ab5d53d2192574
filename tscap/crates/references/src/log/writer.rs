//! Adds to a log.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::reader::header;
use super::{Entry, Header, ReadLogError};
use tscap_host::access::check_links;

/// Why a log can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteLogError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no regular file: it could not be continued, nor read.
    #[error("it is no regular file")]
    NotAFile,
    /// Another process adds to it.
    #[error("another process writes it")]
    InUse,
    /// What is there already is no log.
    #[error("what it holds is no log of this tscap's")]
    Other(#[source] ReadLogError),
    /// It is of another boot: its counter and CLOCK_MONOTONIC are not those of now.
    #[error("it is of another boot of the machine ({0})")]
    OtherBoot(String),
}

/// A log that is being written.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    length: u64,
    /// Bytes of a torn last line that were cut off.
    cut: u64,
}

/// More bytes than any header has.
const LONGEST_HEADER: u64 = 4096;

impl Drop for LogWriter {
    /// A process that is being started may have the file too, until it is its program.
    fn drop(&mut self) {
        // The file is closed in any case.
        let _ = self.file.unlock();
    }
}

impl LogWriter {
    /// Begins a log, or continues one of the same boot, by a header.
    ///
    /// # Errors
    /// [`WriteLogError`]; nothing has been changed then, unless there is no room for the
    /// header: a torn last line is cut off by then, a new file there and empty.
    pub fn open(path: &Path, boot_id: &str) -> Result<Self, WriteLogError> {
        check_links(path)?;
        // A pipe would wait for its reader.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(WriteLogError::NotAFile);
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(WriteLogError::InUse),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let length = file.metadata()?.len();
        if length > 0 {
            let mut first = Vec::new();
            BufReader::new((&file).take(LONGEST_HEADER)).read_until(b'\n', &mut first)?;
            let found = header(&first).map_err(WriteLogError::Other)?;
            if found.boot_id != boot_id {
                return Err(WriteLogError::OtherBoot(found.boot_id));
            }
        }
        let whole = whole_lines(&mut file, length)?;
        file.set_len(whole)?;
        let mut log = Self {
            file,
            length: whole,
            cut: length - whole,
        };
        log.add(&Header::new(boot_id))?;
        Ok(log)
    }

    /// Bytes of a torn last line that were cut off.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If there is no room: then the log is as it was.
    pub fn write(&mut self, entry: &Entry) -> io::Result<()> {
        self.add(entry)
    }

    fn add(&mut self, line: &impl serde::Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line).expect("plain structs always serialise");
        bytes.push(b'\n');
        self.file.seek(SeekFrom::Start(self.length))?;
        let written = self.file.write_all(&bytes);
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            // Half a line must not stay; if it does, readers leave it out.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}

/// Bytes up to the last newline.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    const STEP: u64 = 1 << 16;
    let mut end = length;
    let mut bytes = Vec::new();
    while end > 0 {
        let from = end.saturating_sub(STEP);
        file.seek(SeekFrom::Start(from))?;
        bytes.clear();
        (&*file).take(end - from).read_to_end(&mut bytes)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_free_when_its_writer_is_gone_whoever_else_has_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock.log");
        let open = || LogWriter::open(&path, "boot-1");
        let writer = open().unwrap();
        let other = writer.file.try_clone().unwrap();
        assert!(matches!(open(), Err(WriteLogError::InUse)));
        drop(writer);
        assert!(open().is_ok(), "{other:?}");
    }
}
