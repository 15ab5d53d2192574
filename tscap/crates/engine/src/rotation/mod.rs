//! Several files one after the other: when the next one begins, what it is
//! called, and what happens to those before it.

mod closer;
mod complete;
mod names;
mod next_file;
mod plan;
mod schedule;

use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

pub use closer::ClosedFile;
use closer::{Closer, Job};
use complete::Complete;
pub use names::{NameError, Names};
pub use plan::{Limits, Naming, Period, RotationPlan};
pub(super) use schedule::Schedule;

use super::{Event, Output};
use tscap_clock::{MonoNs, RealNs};
use tscap_host::access::{Owner, folder_of};

/// Files that are remembered where a name may come again at any time: a day of
/// one a second. Their names are a few MB.
const MOST_REMEMBERED: usize = 86_400;

/// The files of a capture.
#[derive(Debug)]
pub struct Rotation {
    pub(super) limits: Limits,
    pub(super) schedule: Option<Schedule>,
    periods_left: Option<u64>,
    names: Names,
    current: Current,
    /// The latest complete files with their frames, as far as they may go away
    /// again: the oldest first.
    complete: Complete,
    keep: Retention,
    /// Bytes in the files before the current one.
    earlier_bytes: u64,
    longest_cut: Duration,
    owner: Owner,
    closer: Closer,
}

/// The file that is being written.
#[derive(Clone, Debug)]
struct Current {
    path: PathBuf,
    start: RealNs,
    /// Frames in the files before it.
    frames_before: u64,
}

/// What becomes of complete files.
#[derive(Clone, Copy, Debug)]
enum Retention {
    /// So many files are kept, the current one too.
    Latest(usize),
    /// A name may come again within so many files.
    ReuseWithin(usize),
}

/// A file that is open and has its headers, but is not the current one yet.
#[derive(Debug)]
pub(super) struct Opened {
    output: Output,
    current: Current,
    replaced: Option<std::fs::File>,
    /// The file before it had no name any more.
    is_removed: bool,
}

impl Rotation {
    /// Takes over with the first file, `path`, begun at `start`. `names` has
    /// given that name.
    pub fn new(
        plan: &RotationPlan,
        names: Names,
        path: PathBuf,
        start: RealNs,
        events: UnboundedSender<Event>,
    ) -> io::Result<Self> {
        let count = |ring: u64| usize::try_from(ring).unwrap_or(usize::MAX);
        Ok(Self {
            limits: plan.limits,
            schedule: None,
            periods_left: plan.periods,
            names,
            current: Current {
                path,
                start,
                frames_before: 0,
            },
            complete: Complete::default(),
            keep: match plan.naming {
                Naming::Dumpcap { ring: Some(ring) } => Retention::Latest(count(ring)),
                Naming::Tcpdump {
                    has_time: false,
                    ring: Some(ring),
                    ..
                } => Retention::ReuseWithin(count(ring)),
                // The name given may be no format, or one that comes again.
                _ => Retention::ReuseWithin(MOST_REMEMBERED),
            },
            earlier_bytes: 0,
            longest_cut: Duration::ZERO,
            owner: Owner::default(),
            closer: Closer::start(events)?,
        })
    }

    /// Gives the next files to `owner`.
    #[must_use]
    pub fn owned_by(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// The first period begins.
    pub(super) fn begin(&mut self, start: MonoNs, to_real: impl Fn(MonoNs) -> RealNs) {
        let period = self.limits.period;
        self.schedule = period.map(|period| Schedule::new(period, start, to_real));
    }

    /// Name of the current file.
    pub fn current_path(&self) -> &Path {
        &self.current.path
    }

    /// Bytes in the files before the current one.
    pub(super) fn earlier_bytes(&self) -> u64 {
        self.earlier_bytes
    }

    /// Longest that the rings have waited for one file to end and the next to
    /// begin.
    pub fn longest_cut(&self) -> Duration {
        self.longest_cut
    }

    pub(super) fn cut_took(&mut self, time: Duration) {
        self.longest_cut = self.longest_cut.max(time);
    }

    /// Whether the current period is the last one. To be asked once at the end of
    /// each.
    pub(super) fn was_last_period(&mut self) -> bool {
        let Some(left) = &mut self.periods_left else {
            return false;
        };
        *left = left.saturating_sub(1);
        *left == 0
    }

    /// Name of the next file, which starts at `start`, by its number or its period.
    pub(super) fn next_name(
        &mut self,
        start: RealNs,
        begins_period: bool,
    ) -> Result<PathBuf, (PathBuf, io::Error)> {
        let next = self.names.next(start, begins_period);
        next.map_err(|error| (self.names.template().into(), io::Error::other(error)))
    }

    /// Name of the next file, which somebody has asked for.
    pub(super) fn asked_name(&mut self, start: RealNs) -> Result<PathBuf, (PathBuf, io::Error)> {
        let next = self.names.asked(start);
        next.map_err(|error| (self.names.template().into(), io::Error::other(error)))
    }

    /// Whether a file that somebody asks for at `start` has another name than the current one.
    pub(super) fn can_begin(&self, start: RealNs) -> bool {
        let next = self.names.clone().asked(start);
        next.is_ok_and(|next| next != self.current.path)
    }

    /// Opens the next file, `path`, after `before` and writes `headers` into it. What fails
    /// leaves no half of it behind, and what had its name until now as it was.
    pub(super) fn open_next(
        &self,
        path: PathBuf,
        start: RealNs,
        frames_before: u64,
        headers: Vec<u8>,
        before: &mut Output,
    ) -> Result<Opened, (PathBuf, io::Error)> {
        // Before a name is taken, which may be that of this file.
        let is_removed = before.is_removed();
        let (output, replaced) = match begin_file(&path, headers, before, self.owner) {
            Ok(begun) => begun,
            Err(error) => return Err((path, error)),
        };
        Ok(Opened {
            output,
            current: Current {
                path,
                start,
                frames_before,
            },
            replaced,
            is_removed,
        })
    }

    /// Makes `next` the current file; `output` is that of the one before, to
    /// which nothing is added any more.
    pub(super) fn switch(&mut self, output: &mut Output, next: Opened) {
        let Opened {
            output: next_output,
            current: next,
            replaced,
            is_removed,
        } = next;
        let old_output = std::mem::replace(output, next_output);
        old_output.unlock();
        let old = std::mem::replace(&mut self.current, next);
        let next = &self.current;
        self.earlier_bytes += old_output.length();
        let closed = ClosedFile {
            frames: next.frames_before - old.frames_before,
            bytes: old_output.length(),
            start: old.start,
            end: next.start,
            is_replaced: old.path == next.path,
            id: old_output.id(),
            path: old.path,
        };
        self.complete.add(closed.path.clone(), closed.frames);
        self.closer.give(Job::Close {
            output: Box::new(old_output),
            file: closed,
            is_removed,
        });
        // Whether tscap's or not, what had the name has lost it, or had before.
        let frames = self.complete.take(&next.path);
        if let Some(file) = replaced {
            let path = next.path.clone();
            self.closer.give(Job::Free { file, path, frames });
        }
        self.let_go();
    }

    /// Removes what is not kept, and forgets what can't go away any more.
    fn let_go(&mut self) {
        let (most, removes) = match self.keep {
            Retention::Latest(most) => (most - 1, true),
            Retention::ReuseWithin(most) => (most, false),
        };
        while self.complete.len() > most {
            let oldest = self.complete.take_oldest();
            if let Some((path, frames)) = oldest.filter(|_| removes) {
                self.closer.give(Job::Remove { path, frames });
            }
        }
    }

    /// Closes the last file, in which `frames` of the capture end at `end`. The
    /// thread that does it ends when everything is closed, freed and removed.
    pub fn close_last(self, output: Output, frames: u64, end: RealNs) -> JoinHandle<()> {
        let closed = ClosedFile {
            frames: frames - self.current.frames_before,
            bytes: output.length(),
            start: self.current.start,
            end,
            is_replaced: false,
            id: output.id(),
            path: self.current.path,
        };
        self.closer.give(Job::Close {
            is_removed: output.is_removed(),
            output: Box::new(output),
            file: closed,
        });
        self.closer.end()
    }
}

/// A file with `headers` at `path`, and what had that name until now.
fn begin_file(
    path: &Path,
    headers: Vec<u8>,
    before: &mut Output,
    owner: Owner,
) -> io::Result<(Output, Option<std::fs::File>)> {
    let (next, file) = next_file::create(path, owner)?;
    let mut output = before.successor(file)?;
    output
        .write_headers(headers)
        .map_err(|error| error.source)?;
    let replaced = next.take_name(before.id())?;
    // It may be opened by others only: then the file system does as it likes.
    output.named_in(std::fs::File::open(folder_of(path)).ok());
    Ok((output, replaced))
}

#[cfg(test)]
mod tests;
