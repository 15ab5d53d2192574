//! Where procfs and sysfs are: the live ones, or a recorded tree in a test.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file of the kernel could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}", path.display())]
pub struct KernelFileError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl KernelFileError {
    /// The kernel's error number, if it was the kernel that refused.
    pub fn os_error(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        // ENODEV: the device went away while its file was open.
        self.source.kind() == io::ErrorKind::NotFound || self.os_error() == Some(libc::ENODEV)
    }
}

/// The mount points of procfs and sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFiles {
    proc: PathBuf,
    sys: PathBuf,
}

impl KernelFiles {
    /// `/proc` and `/sys`.
    pub fn live() -> Self {
        Self::below(Path::new("/"))
    }

    /// `proc` and `sys` in `folder`.
    pub fn below(folder: &Path) -> Self {
        Self {
            proc: folder.join("proc"),
            sys: folder.join("sys"),
        }
    }

    /// Whether these are the live ones.
    pub fn are_live(&self) -> bool {
        *self == Self::live()
    }

    /// A path in procfs.
    pub fn proc(&self, path: impl AsRef<Path>) -> PathBuf {
        self.proc.join(path)
    }

    /// A path in sysfs.
    pub fn sys(&self, path: impl AsRef<Path>) -> PathBuf {
        self.sys.join(path)
    }
}

/// The text of a file, without white space around it.
pub fn read(path: &Path) -> Result<String, KernelFileError> {
    let text = fs::read_to_string(path).map_err(failed("read", path))?;
    Ok(text.trim().to_owned())
}

/// The bytes of a file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, KernelFileError> {
    fs::read(path).map_err(failed("read", path))
}

/// The text of a file that need not be there.
pub fn read_if_there(path: &Path) -> Result<Option<String>, KernelFileError> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a line into a file that is there, by one `write` as the kernel wants it.
pub fn write(path: &Path, value: &str) -> Result<(), KernelFileError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
        file.write_all(format!("{value}\n").as_bytes())
    };
    write().map_err(failed("write", path))
}

/// The names in a folder, as far as they are UTF-8; none if it is not there.
pub fn names(folder: &Path) -> Result<Vec<String>, KernelFileError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed("list", folder))?.file_name();
        names.extend(name.into_string().ok());
    }
    Ok(names)
}

/// The numbers in the names of a folder's entries that begin with `prefix` and
/// go on with a number, ascending; none if the folder is not there.
pub fn numbered(folder: &Path, prefix: &str) -> Result<Vec<u32>, KernelFileError> {
    let names = names(folder)?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix(prefix));
    let mut numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn failed<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> KernelFileError + 'a {
    move |source| KernelFileError {
        operation,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_written_and_missed() {
        let folder = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(folder.path());
        let path = files.proc("irq");
        assert!(read(&path).unwrap_err().is_missing());
        assert_eq!(read_if_there(&path).unwrap(), None);
        // Never makes a file.
        assert!(write(&path, "1").unwrap_err().is_missing());
        fs::create_dir(files.proc("")).unwrap();
        fs::write(&path, "0-1\n").unwrap();
        write(&path, "1").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
        assert_eq!(read(&path).unwrap(), "1");
        let error = read(folder.path()).unwrap_err();
        assert!(!error.is_missing() && error.os_error() == Some(libc::EISDIR));
    }

    #[test]
    fn numbered_entries_are_sorted() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["rx-10", "rx-9", "tx-1", "rx-", "rx-a"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!(numbered(folder.path(), "rx-").unwrap(), [9, 10]);
        let none = numbered(&folder.path().join("none"), "rx-").unwrap();
        assert!(none.is_empty());
    }
}
