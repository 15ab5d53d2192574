//! A new file that has no name until it gets one: what ends before, however it ends, leaves
//! nothing of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use tempfile::{Builder, TempPath};

use super::access::folder_of;

/// Names of files until they have their own begin so.
const PREFIX: &str = ".tscap-";
const SUFFIX: &str = ".part";

/// A new, empty file, which its owner alone may read.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    /// Its name until then, where the file system has no files without one. It is removed unless
    /// the file takes its own name.
    part: Option<TempPath>,
}

impl NewFile {
    /// Makes the file in the folder of `path`, which is to be its name; `is_appended` if it is
    /// opened to be appended to, else to be written.
    ///
    /// # Errors
    /// If no file can be made there.
    pub fn for_path(path: &Path, is_appended: bool) -> io::Result<Self> {
        let folder = folder_of(path);
        let path = path.to_owned();
        if let Ok(file) = unnamed(folder, is_appended) {
            let part = None;
            return Ok(Self { file, path, part });
        }
        let mut builder = Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX).append(is_appended);
        let (file, part) = builder.tempfile_in(folder)?.into_parts();
        let part = Some(part);
        Ok(Self { file, path, part })
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// The name that it has until it takes its own, if the file system needs one.
    pub fn part(&self) -> Option<&Path> {
        self.part.as_deref()
    }

    /// Takes its name, also from a file or link that has it. What that leads to stays.
    ///
    /// # Errors
    /// If the name can't be had. The file is gone then.
    pub fn take_name(self) -> io::Result<()> {
        let Self { file, path, part } = self;
        if let Some(part) = part {
            return Ok(part.persist(path)?);
        }
        match link(&file, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            linked => return linked,
        }
        // A name can't be taken over but from one name to another.
        let linked = Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .make_in(folder_of(&path), |part| link(&file, part))?;
        Ok(linked.into_temp_path().persist(path)?)
    }
}

/// A file of a folder that has no name (O_TMPFILE, open(2)).
fn unnamed(folder: &Path, is_appended: bool) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .append(is_appended)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(folder)?;
    // Without procfs it would never get one.
    fs::symlink_metadata(by_descriptor(&file))?;
    Ok(file)
}

fn by_descriptor(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = by_descriptor(file);
    let follow = AtFlags::AT_SYMLINK_FOLLOW;
    Ok(linkat(AT_FDCWD, &from, AT_FDCWD, path, follow)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn it_has_no_name_before_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for is_appended in [false, true, true] {
            let before = names(folder.path());
            let mut new = NewFile::for_path(&path, is_appended).unwrap();
            new.file().write_all(b"whole").unwrap();
            if unnamed(folder.path(), false).is_ok() {
                assert_eq!((new.part(), names(folder.path())), (None, before));
            }
            new.take_name().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"whole");
            assert_eq!(names(folder.path()), 1);
            fs::write(&path, "older, and longer").unwrap();
        }
    }

    #[test]
    fn a_name_that_can_not_be_had_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::create_dir(&path).unwrap();
        let new = NewFile::for_path(&path, false).unwrap();
        assert!(new.take_name().is_err());
        assert_eq!(names(folder.path()), 1);
        assert!(NewFile::for_path(&folder.path().join("none/out"), false).is_err());
    }

    /// As on file systems that have only files with names.
    #[test]
    fn a_name_in_between_is_removed_or_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let named = || {
            let part = Builder::new().tempfile_in(folder.path()).unwrap();
            let (file, part) = part.into_parts();
            NewFile {
                file,
                path: path.clone(),
                part: Some(part),
            }
        };
        drop(named());
        assert_eq!(names(folder.path()), 0);
        named().take_name().unwrap();
        assert!(path.exists() && names(folder.path()) == 1);
    }
}
