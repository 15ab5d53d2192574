//! The file that readers map.
//!
//! It is made whole under another name and then renamed, so that nobody maps one that is short
//! or has no page. It stays when its writer ends: the page says that it is closed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};
use tscap_clock_reader::layout::{HEADER_WORDS, Header, Latest, Page, SIZE, state};
use tscap_clock_reader::system::{KIND, WritableMapping};

/// Why a page can't be put where readers find it.
#[derive(Debug, thiserror::Error)]
pub enum PageFileError {
    /// Another process writes to it.
    #[error("another tscap serves this clock")]
    InUse,
    /// What is there is no page.
    #[error("the file there is no clock's page, and is not replaced")]
    OtherFile,
    /// The identity of the boot has another form.
    #[error("cannot tell which boot of the machine this is")]
    BootId,
    /// A file can't be made or mapped.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The file, which is made with its first page.
#[derive(Debug)]
pub struct PageFile {
    path: PathBuf,
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    mapping: WritableMapping,
    /// Keeps others from writing one to the same place.
    _lock: Flock<File>,
}

impl PageFile {
    /// At this path; nothing is made yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            made: None,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a page into it. Makes the file, and its folder, at the first one.
    ///
    /// # Errors
    /// Only at the first page.
    pub fn write(&mut self, page: &Page) -> Result<(), PageFileError> {
        let words = page.to_words();
        if let Some(made) = &mut self.made {
            made.mapping.write(&words);
            return Ok(());
        }
        check(&self.path)?;
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        DirBuilder::new()
            .mode(0o755)
            .recursive(true)
            .create(folder)?;
        let new = tempfile::Builder::new()
            .prefix(".clock")
            .tempfile_in(folder)?;
        let file = new.as_file();
        file.set_len(SIZE as u64)?;
        // Readers may be of any user; nobody but the owner makes it shorter.
        file.set_permissions(Permissions::from_mode(0o644))?;
        let header = header()?.to_words().map(u64::to_le_bytes);
        file.write_all_at(header.as_flattened(), 0)?;
        let mut mapping = WritableMapping::of(file)?;
        mapping.write(&words);
        let lock = lock(file.try_clone()?)?;
        new.persist(&self.path).map_err(|error| error.error)?;
        self.made = Some(Made {
            mapping,
            _lock: lock,
        });
        Ok(())
    }
}

/// Readers look for another one.
impl Drop for PageFile {
    fn drop(&mut self) {
        if let Some(made) = &mut self.made {
            let latest = Latest {
                state: state::CLOSED,
                ..Latest::default()
            };
            let past = Vec::new();
            made.mapping.write(&Page { latest, past }.to_words());
        }
    }
}

/// Whether a file may be put there: over none, or over a page that nobody writes to.
fn check(path: &Path) -> Result<(), PageFileError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.is_file() || found.len() != SIZE as u64 {
        return Err(PageFileError::OtherFile);
    }
    let file = File::open(path)?;
    let mut words = [[0; 8]; HEADER_WORDS];
    file.read_exact_at(words.as_flattened_mut(), 0)?;
    if Header::from_words(&words.map(u64::from_le_bytes)).is_none() {
        return Err(PageFileError::OtherFile);
    }
    lock(file).map(drop)
}

fn lock(file: File) -> Result<Flock<File>, PageFileError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => PageFileError::InUse,
        error => PageFileError::Io(error.into()),
    })
}

fn header() -> Result<Header, PageFileError> {
    let boot = clock_gettime(ClockId::CLOCK_BOOTTIME).map_err(io::Error::from)?;
    let generation = std::time::Duration::from(boot).as_nanos();
    Ok(Header {
        boot_id: tscap_clock_reader::boot_id().map_err(|_| PageFileError::BootId)?,
        generation: u64::try_from(generation).unwrap_or(u64::MAX),
        counter: KIND,
    })
}

#[cfg(test)]
mod tests;
