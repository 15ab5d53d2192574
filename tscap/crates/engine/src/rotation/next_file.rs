//! The next file, which takes its name once it has its headers.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::prepared::lock;
use tscap_host::access::{Owner, keep_access};
use tscap_host::new_file::NewFile;

/// A new, empty file without a name; gone unless it [takes its name](Self::take_name).
#[derive(Debug)]
pub(super) struct NextFile {
    path: PathBuf,
    new: NewFile,
}

/// Makes the file, which is given to `owner`: what others leave in the folder is neither opened
/// nor followed.
pub(super) fn create(path: &Path, owner: Owner) -> io::Result<(NextFile, File)> {
    let mut new = NewFile::for_path(path, true)?;
    let file = new.file();
    owner.take(file)?;
    lock(file)?;
    let file = file.try_clone()?;
    let path = path.to_owned();
    Ok((NextFile { path, new }, file))
}

impl NextFile {
    /// Gives the file its name. What had that name until now is returned: its bytes
    /// are freed when that is dropped, which takes long if they are many. A file that
    /// another capture writes keeps its name; `own`, by device and inode, is the file
    /// before this one.
    pub(super) fn take_name(mut self, own: Option<(u64, u64)>) -> io::Result<Option<File>> {
        let replaced = match fs::symlink_metadata(&self.path) {
            Ok(data) if data.is_file() => {
                if own != Some((data.dev(), data.ino())) {
                    check_unlocked(&self.path)?;
                }
                keep_access(&data, self.new.file())?;
                true
            }
            Ok(data) if data.is_symlink() => true,
            Ok(_) => return Err(io::Error::other("something has that name that is no file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let replaced = replaced.then(|| {
            OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
                .open(&self.path)
        });
        let replaced = replaced.transpose()?;
        self.new.take_name()?;
        Ok(replaced)
    }
}

/// An error if another capture writes the file.
fn check_unlocked(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    match file {
        // Unlocked again at once.
        Ok(file) => lock(&file),
        // It may be replaced without being read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &Path) -> Option<File> {
        create(path, Owner::default())
            .unwrap()
            .0
            .take_name(None)
            .unwrap()
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
        drop(create(&path, Owner::default()).unwrap());
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
    fn a_link_to_nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nothing", &link).unwrap();
        assert!(made(&link).is_some() && !link.is_symlink());
    }

    #[test]
    fn a_file_that_may_not_be_read_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o200)).unwrap();
        assert!(made(&path).is_some());
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    }

    #[test]
    fn a_name_without_a_folder_is_one_of_the_current_folder() {
        drop(create(Path::new("tscap-test-out"), Owner::default()).unwrap());
        assert!(!Path::new("tscap-test-out").exists());
    }

    #[test]
    fn a_file_that_another_capture_writes_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"theirs").unwrap();
        let theirs = File::open(&path).unwrap();
        lock(&theirs).unwrap();
        let data = theirs.metadata().unwrap();
        let (next, _) = create(&path, Owner::default()).unwrap();
        let busy = io::ErrorKind::ResourceBusy;
        assert_eq!(next.take_name(None).unwrap_err().kind(), busy);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        // The file before this one is still being written by the same capture.
        let (next, file) = create(&path, Owner::default()).unwrap();
        assert!(next.take_name(Some((data.dev(), data.ino()))).is_ok());
        let second = lock(&File::open(&path).unwrap());
        assert_eq!(second.unwrap_err().kind(), busy);
        drop(file);
    }

    #[test]
    fn a_name_in_use_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        made(&path);
        assert_eq!(mode(), 0o600);
        let group = std::os::unix::fs::PermissionsExt::from_mode(0o640);
        fs::set_permissions(&path, group).unwrap();
        made(&path);
        assert_eq!(mode(), 0o640);
    }

    #[test]
    fn what_is_no_file_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::create_dir(&path).unwrap();
        let error = create(&path, Owner::default())
            .unwrap()
            .0
            .take_name(None)
            .unwrap_err();
        assert!(error.to_string().contains("no file"), "{error}");
        assert!(path.is_dir());
        assert!(create(&folder.path().join("none/out"), Owner::default()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
