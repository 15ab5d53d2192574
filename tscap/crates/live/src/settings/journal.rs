//! The journals: one file for each process that has changes in force.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::Change;
use tscap_base::kernel_files::{KernelFileError, KernelFiles};
use tscap_host::process;

/// Version of the journal's schema. Version 1 does not know an interface's hardware
/// address and the cookie of its network namespace, version 2 no filters of clsact, version 3
/// no changes that last, nor threaded NAPI and deferred interrupts.
const VERSION: u32 = 4;
/// Journals are called `<process>-<start>.json`.
const EXTENSION: &str = "json";
/// A journal that is being written has this one until it is complete.
const EXTENSION_NEW: &str = "new";
/// Where root's journals are.
const FOLDER: &str = "/run/tscap";

/// What one process has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    v: u32,
    /// The boot of the machine in which it ran.
    boot_id: String,
    /// Process number of the one that has made the changes.
    pub pid: u32,
    /// When it was started, clock ticks since boot.
    pub started: u64,
    /// Its changes are to last when it has ended.
    #[serde(default)]
    pub(super) is_lasting: bool,
    /// What it has changed, in this order.
    pub changes: Vec<Change>,
}

/// Whether a journal is still somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its process runs.
    Live,
    /// Its process is gone: what it says is owed.
    Stale,
    /// Its process is gone, and its changes are to last until somebody wants them back.
    Lasting,
    /// Another boot: its changes went with it.
    OtherBoot,
}

/// Why a journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file or its folder.
    #[error("cannot {operation} {}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The process that is to keep it can't be started.
    #[error("cannot start the process that gives settings back")]
    NoKeeper(#[source] io::Error),
    /// The file is no journal that this tscap knows.
    #[error("cannot understand {}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Others may write into the folder, so its journals can't be trusted.
    #[error("{} is not a folder of this user alone (mode 0700)", path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
    },
    /// The folder belongs to root, and this user is another.
    #[error("{} is root's", path.display())]
    RootOnly {
        /// The folder.
        path: PathBuf,
    },
    /// What should be a file of tscap is something else, or somebody else's.
    #[error("{} is not a regular file of this user", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// procfs does not tell which boot or process this is.
    #[error(transparent)]
    Process(#[from] KernelFileError),
    /// The same, without a cause.
    #[error("cannot find this process in procfs")]
    NoProcess,
    /// The process that keeps the journal of this one does not answer.
    #[error("the process that keeps the journal does not answer")]
    Keeper(#[source] io::Error),
    /// That process says why.
    #[error("{0}")]
    Kept(String),
}

impl JournalError {
    /// Whether there was no permission.
    pub fn is_permission(&self) -> bool {
        match self {
            Self::File { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::RootOnly { .. } => true,
            _ => false,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            error if error.is_permission() => {
                format!("run it as root: tscap keeps journals of what it changes in {FOLDER}")
            }
            Self::NotPrivate { path } => format!(
                "look whose it is: `ls -la {path}`; if all of it is root's: `chmod 700 {path}`, else \
                 remove it",
                path = path.display()
            ),
            Self::NoKeeper(_) => {
                "mount procfs at /proc: tscap starts itself by /proc/self/exe".into()
            }
            Self::Malformed { path, .. } | Self::NotAFile { path } => {
                format!("look at it, then remove it: rm {}", path.display())
            }
            _ => format!("tscap keeps journals of what it changes in {FOLDER}"),
        }
    }
}

/// The folder of the journals, and where procfs is.
#[derive(Clone, Debug)]
pub struct JournalFolder {
    path: PathBuf,
    files: KernelFiles,
}

impl JournalFolder {
    /// `/run/tscap` for root. For others a folder of theirs: what systemd made for a service
    /// (`RuntimeDirectory=`), one in `/run/user` where the user is logged in, or one in `/tmp`.
    pub fn live() -> Self {
        let user = nix::unistd::geteuid();
        if user.is_root() {
            return Self::at(Path::new(FOLDER), &KernelFiles::live());
        }
        let of_service = env::var_os("RUNTIME_DIRECTORY");
        // It may be a link into /run/private.
        let of_service = of_service.and_then(|folder| fs::canonicalize(folder).ok());
        let own = PathBuf::from(format!("/run/user/{user}"));
        let path = of_service.unwrap_or_else(|| {
            if own.is_dir() {
                own.join("tscap")
            } else {
                format!("/tmp/tscap-{user}").into()
            }
        });
        Self::at(&path, &KernelFiles::live())
    }

    /// Another folder, with processes as `files` has them.
    pub fn at(path: &Path, files: &KernelFiles) -> Self {
        Self {
            path: path.to_owned(),
            files: files.clone(),
        }
    }

    /// An empty journal of process `pid`, not written yet.
    pub fn journal_of(&self, pid: u32) -> Result<Journal, JournalError> {
        Ok(Journal {
            v: VERSION,
            boot_id: process::boot_id(&self.files)?,
            pid,
            started: process::started(&self.files, pid)?.ok_or(JournalError::NoProcess)?,
            is_lasting: false,
            changes: Vec::new(),
        })
    }

    /// The file of a journal.
    pub fn file(&self, journal: &Journal) -> PathBuf {
        let name = format!("{}-{}", journal.pid, journal.started);
        self.path.join(name).with_extension(EXTENSION)
    }

    /// All journals, the latest process first: what was changed last must be
    /// given back first. A file that is no journal is an error in its place.
    pub fn all(&self) -> Result<Vec<Result<Journal, JournalError>>, JournalError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("list", &self.path)(error)),
        };
        self.check_private()?;
        let mut journals = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed("list", &self.path))?.path();
            if path.extension().is_some_and(|it| it == EXTENSION) {
                match read(&path) {
                    // Its process has just ended.
                    Err(JournalError::File { source, .. })
                        if source.kind() == io::ErrorKind::NotFound => {}
                    journal => journals.push(journal),
                }
            }
        }
        journals.sort_by_key(|journal| match journal {
            Ok(journal) => std::cmp::Reverse(journal.started),
            Err(_) => std::cmp::Reverse(0),
        });
        Ok(journals)
    }

    /// Whether the journal is still somebody's.
    pub fn state(&self, journal: &Journal) -> Result<State, JournalError> {
        if journal.boot_id != process::boot_id(&self.files)? {
            return Ok(State::OtherBoot);
        }
        match process::started(&self.files, journal.pid)? {
            Some(started) if started == journal.started => Ok(State::Live),
            _ if journal.is_lasting => Ok(State::Lasting),
            _ => Ok(State::Stale),
        }
    }

    /// Makes the folder unless it is there; returns its path.
    pub(super) fn make(&self) -> Result<&Path, JournalError> {
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(failed("make", &self.path)(error))
            }
            _ => self.check_private().map(|()| self.path.as_path()),
        }
    }

    /// Writes the journal; what was there before is there until the new one is
    /// complete.
    pub fn write(&self, journal: &Journal) -> Result<(), JournalError> {
        self.make()?;
        let path = self.file(journal);
        let new = path.with_extension(EXTENSION_NEW);
        let json =
            serde_json::to_string_pretty(journal).map_err(|source| JournalError::Malformed {
                path: path.clone(),
                source,
            })?;
        // A process that was killed while it wrote left it.
        let _ = fs::remove_file(&new);
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(format!("{json}\n").as_bytes())?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| {
            // Half a journal is of no use.
            let _ = fs::remove_file(&new);
            failed("write", &path)(error)
        })
    }

    /// Removes the journal. That it is gone already is fine.
    pub fn remove(&self, journal: &Journal) -> Result<(), JournalError> {
        let path = self.file(journal);
        // A process that was killed while it wrote left this one too.
        let _ = fs::remove_file(path.with_extension(EXTENSION_NEW));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// A journal tells root what to set: nobody else may write one.
    fn check_private(&self) -> Result<(), JournalError> {
        let meta = fs::symlink_metadata(&self.path).map_err(failed("look at", &self.path))?;
        let user = nix::unistd::geteuid();
        if meta.uid() == 0 && !user.is_root() {
            return Err(JournalError::RootOnly {
                path: self.path.clone(),
            });
        }
        let is_own = meta.uid() == user.as_raw();
        if meta.is_dir() && is_own && meta.mode() & 0o077 == 0 {
            Ok(())
        } else {
            Err(JournalError::NotPrivate {
                path: self.path.clone(),
            })
        }
    }
}

fn read(path: &Path) -> Result<Journal, JournalError> {
    let mut file = open_own(OpenOptions::new().read(true), path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed("read", path))?;
    let known = serde_json::from_slice(&text).and_then(|journal: Journal| match journal.v {
        1..=VERSION => Ok(journal),
        v => Err(serde_json::Error::custom(format!("it has version {v}"))),
    });
    known.map_err(|source| JournalError::Malformed {
        path: path.to_owned(),
        source,
    })
}

/// Opens a regular file of this user. Waits for nobody, as the open of a fifo would.
pub(super) fn open_own(options: &mut OpenOptions, path: &Path) -> Result<File, JournalError> {
    let not_a_file = || JournalError::NotAFile {
        path: path.to_owned(),
    };
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match options.custom_flags(flags).open(path) {
        // A link; a fifo without a reader, or a socket.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => {
            return Err(not_a_file());
        }
        file => file.map_err(failed("open", path))?,
    };
    let meta = file.metadata().map_err(failed("look at", path))?;
    if meta.is_file() && meta.uid() == nix::unistd::geteuid().as_raw() {
        Ok(file)
    } else {
        Err(not_a_file())
    }
}

pub(super) fn failed<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> JournalError + 'a {
    move |source| JournalError::File {
        operation,
        path: path.to_owned(),
        source,
    }
}
