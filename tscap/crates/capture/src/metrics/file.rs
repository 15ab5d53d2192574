//! The metrics file, written by a thread of its own: a folder that hangs holds up neither
//! signals nor the capture.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::time::Duration;

use tscap_host::caps;
use tscap_host::new_file::NewFile;

/// node_exporter, another user, is to read it; no frame is in it.
const MODE: u32 = 0o644;

/// A file that is there whole or not at all, whenever it is read.
#[derive(Debug)]
pub(super) struct MetricsFile {
    /// `None` after the end.
    pages: Option<SyncSender<String>>,
    results: Receiver<io::Result<()>>,
}

impl MetricsFile {
    pub fn at(path: &Path) -> io::Result<Self> {
        // One is written and one may wait.
        let (pages, texts) = sync_channel::<String>(1);
        let (result, results) = channel();
        let path = PathBuf::from(path);
        let thread = std::thread::Builder::new().name("tscap-metrics".into());
        thread.spawn(move || {
            for text in texts {
                // The capture has given up its own by now. With more it does the same.
                let _ = caps::keep_only(&caps::FOR_FILES);
                // Nobody waits any more if this fails.
                let _ = result.send(replace(&path, &text));
            }
        })?;
        Ok(Self {
            pages: Some(pages),
            results,
        })
    }

    /// Has `page` written; gives what has become of the pages before it, and an error if
    /// these are not written yet.
    pub fn write(&self, page: String) -> Vec<io::Result<()>> {
        let pages = self.pages.as_ref().expect("not ended yet");
        let mut results: Vec<_> = self.results.try_iter().collect();
        match pages.try_send(page) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => results.push(Err(hangs())),
            Err(TrySendError::Disconnected(_)) => {
                results.push(Err(io::Error::other("its thread has ended")));
            }
        }
        results
    }

    /// Waits until everything is written, for `within` at most.
    pub fn finish(&mut self, within: Duration) -> Vec<io::Result<()>> {
        self.pages = None;
        let mut results = Vec::new();
        loop {
            match self.results.recv_timeout(within) {
                Ok(result) => results.push(result),
                Err(RecvTimeoutError::Disconnected) => return results,
                Err(RecvTimeoutError::Timeout) => {
                    results.push(Err(hangs()));
                    return results;
                }
            }
        }
    }
}

fn hangs() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "the write before has not come to its end",
    )
}

/// Writes it without a name, or one that no collector reads, and gives it its own.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut new = NewFile::for_path(path, false)?;
    let file = new.file();
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    new.take_name()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn others_may_read_it_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tscap.prom");
        fs::write(&path, "of an earlier capture").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let mut file = MetricsFile::at(&path).unwrap();
        assert!(file.write("page\n".into()).is_empty());
        assert!(matches!(&file.finish(LONG)[..], [Ok(())]));
        assert_eq!(fs::read_to_string(&path).unwrap(), "page\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_of_each_page() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = MetricsFile::at(&folder.path().join("none/tscap.prom")).unwrap();
        let before = file.write("1\n".into());
        let results = before.into_iter().chain(file.finish(LONG));
        let errors: Vec<_> = results.map(|it| it.unwrap_err().kind()).collect();
        assert_eq!(errors, [io::ErrorKind::NotFound]);
    }
}
