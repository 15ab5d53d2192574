//! Files that are there whole or not at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::access::{Owner, check_links, folder_of, keep_access};
use crate::new_file::NewFile;
use crate::user;

/// The temporary files of this process that have no name of their own yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the temporary files; none is made, and none gets its name, any more. To be
/// called before the process exits while other threads may be writing.
pub fn abandon() {
    let unfinished = lock();
    for path in &*unfinished {
        // The folder may be gone.
        let _ = fs::remove_file(path);
    }
    std::mem::forget(unfinished);
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a file under another name and gives it its own when it is whole. What
/// the path led to is as before if that fails; its owner and mode stay. A new file is
/// its owner's alone. A pipe or a device is written to.
pub fn write_whole(path: &Path, content: &str) -> io::Result<()> {
    write_whole_by(path, 0o600, |file| file.write_all(content.as_bytes()))
}

/// The same, of what `write` writes; a new file has the mode `new_mode`.
pub fn write_whole_by<T, E: From<io::Error>>(
    path: &Path,
    new_mode: u32,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    check_links(path)?;
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let before = match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        found => Some(found?),
    };
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return write(&mut File::create(path)?);
    }
    let mut new = {
        let mut unfinished = lock();
        let new = NewFile::for_path(&path, false)?;
        unfinished.extend(new.part().map(Path::to_owned));
        new
    };
    let temporary = new.part().map(Path::to_owned);
    let written = write(new.file()).and_then(|written| {
        finish(new.file(), before.as_ref(), new_mode)?;
        Ok(written)
    });
    let mut unfinished = lock();
    unfinished.retain(|other| Some(other) != temporary.as_ref());
    let written = written?;
    new.take_name()?;
    sync_folder(&path)?;
    Ok(written)
}

/// Gives a file that takes the place of `before` its owner and mode, and waits until the disk
/// has it.
fn finish(file: &File, before: Option<&Metadata>, new_mode: u32) -> io::Result<()> {
    // What root makes for a user is that user's, and stays it.
    let invoker = user::invoker().filter(|(user, _)| {
        let is_theirs = |before: &Metadata| before.uid() == user.as_raw();
        before.is_none_or(is_theirs)
    });
    if let Some((user, group)) = invoker {
        Owner::of(user, group).take(file)?;
    }
    match before {
        Some(before) => keep_access(before, file)?,
        None => file.set_permissions(Permissions::from_mode(new_mode & 0o777))?,
    }
    file.sync_all()
}

/// Waits until the disk has a file's name.
fn sync_folder(path: &Path) -> io::Result<()> {
    // One that may be written to but not read can't be opened: the file system does as it likes.
    let Ok(folder) = File::open(folder_of(path)) else {
        return Ok(());
    };
    match folder.sync_all() {
        // File systems that have no such thing.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Whether two paths lead to one regular file, also if it is not there yet.
pub fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && is_one(&a, &b),
        (Err(_), Err(_)) => {
            let folders = [a, b].map(|path| match path.parent() {
                Some(folder) if folder != "" => fs::metadata(folder),
                _ => fs::metadata("."),
            });
            let [Ok(of_a), Ok(of_b)] = folders else {
                return false;
            };
            a.file_name() == b.file_name() && is_one(&of_a, &of_b)
        }
        _ => false,
    }
}

/// Whether these are of one file.
pub fn is_one(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_replaces_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.html");
        for content in ["a longer one", "short"] {
            write_whole(&path, content).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(names(folder.path()), ["out.html"]);
    }

    #[test]
    fn what_can_not_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.html");
        fs::create_dir(&path).unwrap();
        assert!(write_whole(&path, "text").is_err());
        assert!(write_whole(&folder.path().join("none/out.html"), "text").is_err());
        assert_eq!(names(folder.path()), ["out.html"]);
    }

    #[test]
    fn a_new_file_is_its_owners_and_an_old_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.html");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        write_whole(&path, "new").unwrap();
        assert_eq!(mode(), 0o600);
        for kept in [0o644, 0o400] {
            fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            write_whole(&path, "again").unwrap();
            assert_eq!(mode(), kept);
        }
    }

    #[test]
    fn a_link_leads_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_whole(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
    }

    #[test]
    fn paths_to_one_file_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        let around = folder.path().join(".").join("file");
        assert!(is_same(&file, &around) && !is_same(&file, &link));
        fs::write(&file, "old").unwrap();
        assert!(!is_same(&file, &link));
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert!(is_same(&file, &around) && is_same(&file, &link));
        // Nothing is lost where both are a device.
        let null = Path::new("/dev/null");
        assert!(!is_same(null, null));
    }

    /// It would choose which file is replaced.
    #[test]
    fn a_link_of_another_user_in_a_folder_of_everybody_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            println!("only root can make one");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_whole(&link, "by a link of one's own").unwrap();
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
        let refused = write_whole(&link, "new").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(names(folder.path()).len(), 2);
    }

    /// /dev/stdout may be one: it must not become a file.
    #[test]
    fn a_pipe_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write_whole(&path, "text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert_eq!(names(folder.path()), ["pipe"]);
    }
}
