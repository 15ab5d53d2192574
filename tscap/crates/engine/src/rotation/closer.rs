//! A thread that closes, frees and removes files: each may take longer than a
//! ring lasts.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::mpsc::UnboundedSender;

use crate::{Event, Output};
use tscap_clock::RealNs;
use tscap_host::caps;

/// A file that nothing is added to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedFile {
    /// Its name.
    pub path: PathBuf,
    /// Packet blocks that the file has.
    pub frames: u64,
    /// Length of the file, bytes, with headers and statistics.
    pub bytes: u64,
    /// When it began: the start of its period, or the time of its first frame.
    pub start: RealNs,
    /// When the next one began, or the capture ended.
    pub end: RealNs,
    /// The next file has taken its name, so it is gone already.
    pub is_replaced: bool,
    /// Its device and inode, by which it can be told from one that has taken its
    /// name; `None` if the kernel does not say.
    pub id: Option<(u64, u64)>,
}

/// What the thread is to do.
#[derive(Debug)]
pub(super) enum Job {
    Close {
        output: Box<Output>,
        file: ClosedFile,
        /// Somebody else had removed it before the next file began, which may have taken
        /// its name since.
        is_removed: bool,
    },
    /// Frees the bytes of a file whose name has been taken by another.
    Free {
        file: File,
        path: PathBuf,
        frames: Option<u64>,
    },
    Remove {
        path: PathBuf,
        frames: u64,
    },
}

/// The thread's other end. When it is dropped the thread ends with its last job.
#[derive(Debug)]
pub(super) struct Closer {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Closer {
    /// Starts the thread, which says what it has done.
    pub fn start(events: UnboundedSender<Event>) -> io::Result<Self> {
        let (jobs, todo) = channel();
        let thread = std::thread::Builder::new().name("tscap-closer".into());
        let thread = thread.spawn(move || {
            // With fewer of them it does what it can.
            let _ = caps::keep_only(&caps::FOR_FILES);
            for job in todo {
                if let Some(event) = work(job) {
                    // At the very end nobody may be left to care.
                    let _ = events.send(event);
                }
            }
        })?;
        Ok(Self { jobs, thread })
    }

    pub fn give(&self, job: Job) {
        // The thread takes jobs as long as there is this end.
        let _ = self.jobs.send(job);
    }

    /// No more jobs: the thread ends with those that it has.
    pub fn end(self) -> JoinHandle<()> {
        self.thread
    }
}

fn work(job: Job) -> Option<Event> {
    Some(match job {
        Job::Close {
            output,
            file,
            is_removed,
        } => Event::FileClosed {
            error: output.close_removed(is_removed).err(),
            file,
        },
        Job::Free { file, path, frames } => {
            drop(file);
            Event::FileRemoved { path, frames }
        }
        Job::Remove { path, frames } => match fs::remove_file(&path) {
            Ok(()) => Event::FileRemoved {
                path,
                frames: Some(frames),
            },
            // A command for instance has made another of it, which is nobody's to free.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Event::NotRemoved { path, error },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_can_not_be_removed_is_told_and_one_that_is_gone_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let (gone, frames) = (path.join("gone"), 1);
        assert!(work(Job::Remove { path: gone, frames }).is_none());
        let event = work(Job::Remove { path, frames });
        assert!(matches!(event, Some(Event::NotRemoved { .. })), "{event:?}");
    }
}
