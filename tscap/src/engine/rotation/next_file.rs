//! The next file, which takes its name once it has its headers.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Appended to the name of a file that has no headers yet.
const PART: &str = ".part";

/// A new, empty file under a name of its own; removed again unless it
/// [takes its name](Self::take_name).
#[derive(Debug)]
pub(super) struct NextFile {
    path: PathBuf,
    part: PathBuf,
}

/// Makes the file.
pub(super) fn create(path: &Path) -> io::Result<(NextFile, File)> {
    let mut part = OsString::from(path);
    part.push(PART);
    let next = NextFile {
        path: path.to_owned(),
        part: part.into(),
    };
    // What a run that was killed left has the same name.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&next.part)?;
    Ok((next, file))
}

impl NextFile {
    /// Gives the file its name. What had that name until now is returned: its bytes
    /// are freed when that is dropped, which takes long if they are many.
    pub(super) fn take_name(self) -> io::Result<Option<File>> {
        let replaced = match fs::symlink_metadata(&self.path).map(|data| data.file_type()) {
            Ok(kind) if kind.is_file() || kind.is_symlink() => Some(
                OpenOptions::new()
                    .read(true)
                    .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
                    .open(&self.path)?,
            ),
            Ok(_) => return Err(io::Error::other("something has that name that is no file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        fs::rename(&self.part, &self.path)?;
        Ok(replaced)
    }
}

impl Drop for NextFile {
    fn drop(&mut self) {
        // Best effort: half a header is no capture. Not there any more if it has
        // taken its name.
        let _ = fs::remove_file(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn made(path: &Path) -> Option<File> {
        create(path).unwrap().0.take_name().unwrap()
    }

    #[test]
    fn a_name_in_use_changes_hands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        assert!(made(&path).is_none());
        fs::write(&path, b"before").unwrap();
        let number = fs::metadata(&path).unwrap().ino();
        let replaced = made(&path).unwrap().metadata().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        // It lives on without a name.
        assert_eq!((replaced.ino(), replaced.len()), (number, 6));
        assert_eq!(replaced.nlink(), 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_fails_before_it_has_a_name_leaves_nothing_and_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"before").unwrap();
        drop(create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"before").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        made(&link);
        assert!(!link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"before");
    }

    #[test]
    fn what_is_no_file_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::create_dir(&path).unwrap();
        let error = create(&path).unwrap().0.take_name().unwrap_err();
        assert!(error.to_string().contains("no file"), "{error}");
        assert!(path.is_dir());
        assert!(create(&folder.path().join("none/out")).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
