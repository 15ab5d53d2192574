//! Files that are there whole or not at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::Builder;

/// Writes a file under another name and gives it its own when it is whole. What
/// the path led to is as before if that fails. A pipe or a device is written to.
pub(super) fn write_whole(path: &Path, content: &str) -> io::Result<()> {
    write_whole_by(path, |file| file.write_all(content.as_bytes()))
}

/// The same, of what `write` writes.
pub(super) fn write_whole_by<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    if path.exists() && !path.is_file() {
        return write(&mut File::create(path)?);
    }
    let folder = match path.parent() {
        Some(folder) if folder != "" => folder,
        _ => Path::new("."),
    };
    let mut file = Builder::new()
        .prefix(".tscap-")
        // Less what the umask takes.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    let written = write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(io::Error::from)?;
    Ok(written)
}

/// Whether two paths lead to one regular file, also if it is not there yet.
pub(super) fn is_same(a: &Path, b: &Path) -> bool {
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
pub(super) fn is_one(a: &Metadata, b: &Metadata) -> bool {
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
