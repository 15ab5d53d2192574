//! The next file under its name, whatever had that name before.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A new, empty file.
#[derive(Debug)]
pub(super) struct NextFile {
    pub file: File,
    /// What had its name until now. Its bytes are freed when this is dropped,
    /// which takes long if they are many.
    pub replaced: Option<File>,
}

/// Makes the file. One that is there already loses its name, not its bytes.
pub(super) fn create(path: &Path) -> io::Result<NextFile> {
    let new = || OpenOptions::new().write(true).create_new(true).open(path);
    match new() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => {
            return created.map(|file| NextFile {
                file,
                replaced: None,
            });
        }
    }
    let kind = fs::symlink_metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_symlink() {
        return Err(io::Error::other("something has that name that is no file"));
    }
    let replaced = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
        .open(path)?;
    fs::remove_file(path)?;
    Ok(NextFile {
        file: new()?,
        replaced: Some(replaced),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_name_in_use_changes_hands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        assert!(create(&path).unwrap().replaced.is_none());
        fs::write(&path, b"before").unwrap();
        let number = fs::metadata(&path).unwrap().ino();
        let next = create(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        // It lives on without a name.
        let replaced = next.replaced.unwrap().metadata().unwrap();
        assert_eq!((replaced.ino(), replaced.len()), (number, 6));
        assert_eq!(replaced.nlink(), 0);
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"before").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        create(&link).unwrap();
        assert!(!link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"before");
    }

    #[test]
    fn what_is_no_file_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::create_dir(&path).unwrap();
        let error = create(&path).unwrap_err();
        assert!(error.to_string().contains("no file"), "{error}");
        assert!(path.is_dir());
        assert!(create(&folder.path().join("none/out")).is_err());
    }
}
