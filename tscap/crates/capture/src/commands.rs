//! `-z`: a program that runs on each file that is complete.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use nix::unistd::{AccessFlags, access};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::event::{Event, Reporter};
use super::summary::CommandsSummary;
use tscap_base::failure::{Context as _, Failure};
use tscap_host::{caps, process};

/// Why the program is not run on a file.
pub(super) const REPLACED: &str = "not run: another file has that name by now";

/// Runs the program at the lowest priority, on as many files at a time as there
/// are CPUs; the other files wait.
#[derive(Debug)]
pub(super) struct Commands {
    /// None once there will be no more files.
    files: Option<Sender<File>>,
    ended: UnboundedReceiver<Ended>,
    summary: CommandsSummary,
}

/// A file to run it on.
#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Device and inode, if they are known.
    id: Option<(u64, u64)>,
}

impl File {
    /// Whether its name now belongs to another file.
    fn is_replaced(&self) -> bool {
        let now = std::fs::symlink_metadata(&self.path).map(|data| (data.dev(), data.ino()));
        self.id.is_some_and(|id| now.is_ok_and(|now| now != id))
    }
}

/// A run that is over.
#[derive(Debug)]
pub(super) struct Ended {
    pub file: PathBuf,
    pub failure: Option<String>,
}

impl Ended {
    /// Tells of a failure.
    pub fn tell(self, reporter: &mut Reporter<'_>) {
        if let Some(failure) = self.failure {
            let file = self.file;
            reporter.tell(Event::CommandFailed { file, failure });
        }
    }
}

/// Refuses a program that is not there.
pub(super) fn check(program: &Path) -> Result<(), Failure> {
    let can_run = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    // As execvp(3) looks for it.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        candidate(&mut [program.to_owned()].into_iter(), can_run)
    } else {
        let mut folders = std::env::split_paths(&path);
        candidate(
            &mut folders.by_ref().map(|folder| folder.join(program)),
            can_run,
        )
    };
    match found {
        Some((_, true)) => Ok(()),
        Some((path, false)) => Err(not_runnable(&path)),
        None => Err(Failure::new(format!(
            "cannot run {} on complete files: there is no such program",
            program.display()
        ))
        .hint(match program.to_string_lossy() {
            words if words.contains(' ') => format!(
                "-z takes one program and no arguments, as tcpdump's does: give it a script \
                 with the line: exec {words} \"$1\""
            ),
            _ => "install it, or give its path".into(),
        })),
    }
}

/// The first of `paths` that can be run, else the first that is there; and whether it can be.
fn candidate(
    paths: &mut dyn Iterator<Item = PathBuf>,
    can_run: impl Fn(&Path) -> bool,
) -> Option<(PathBuf, bool)> {
    let mut there = None;
    for path in paths {
        if can_run(&path) {
            return Some((path, true));
        }
        if path.exists() {
            there.get_or_insert(path);
        }
    }
    there.map(|path| (path, false))
}

fn not_runnable(path: &Path) -> Failure {
    let shown = path.display();
    let what = format!("cannot run {shown} on complete files");
    if path.is_dir() {
        Failure::new(format!("{what}: it is a folder")).hint("give a program in it")
    } else {
        Failure::new(format!("{what}: this user may not execute it"))
            .hint(format!("chmod +x {shown}"))
    }
}

impl Commands {
    /// Starts the threads that run it.
    pub fn start(program: &Path) -> Result<Self, Failure> {
        let (files, waiting) = channel();
        let (tell, ended) = unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..at_a_time {
            let (program, waiting, tell) = (program.to_owned(), waiting.clone(), tell.clone());
            let thread = std::thread::Builder::new().name("tscap-commands".into());
            thread
                .spawn(move || work(&program, &waiting, &tell))
                .context("cannot start a thread")?;
        }
        Ok(Self {
            files: Some(files),
            ended,
            summary: CommandsSummary::default(),
        })
    }

    /// Has the program run on the file at `path`, unless another one has that name
    /// when its turn comes: a ring of files that is quicker than the program.
    pub fn run(&mut self, path: PathBuf, id: Option<(u64, u64)>) {
        self.summary.unfinished += 1;
        let files = self.files.as_ref();
        let _ = files.map(|files| files.send(File { path, id }));
    }

    /// Counts `file` as failed without a run.
    pub fn leave_out(&mut self) {
        self.summary.failed += 1;
    }

    /// Waits for the end of a run. `None` after the last one, once there will be
    /// no more files. Safe to cancel.
    pub async fn next(&mut self) -> Option<Ended> {
        let ended = self.ended.recv().await?;
        self.summary.unfinished -= 1;
        match ended.failure {
            None => self.summary.succeeded += 1,
            Some(_) => self.summary.failed += 1,
        }
        Some(ended)
    }

    /// There will be no more files.
    pub fn no_more(&mut self) {
        self.files = None;
    }

    /// The counts so far.
    pub fn summary(&self) -> CommandsSummary {
        self.summary
    }
}

fn work(program: &Path, files: &Mutex<Receiver<File>>, tell: &UnboundedSender<Ended>) {
    // The programs get none then, those of root's all.
    let _ = caps::keep_only(&[]);
    let lowered = process::set_nice(0, process::LOWEST_PRIORITY);
    loop {
        let Ok(file) = files.lock().map(|files| files.recv()) else {
            return;
        };
        let Ok(file) = file else {
            return;
        };
        let failure = match &lowered {
            Err(error) => Some(format!("no low priority for it: {error}")),
            Ok(()) if file.is_replaced() => Some(REPLACED.into()),
            Ok(()) => run(program, &file.path),
        };
        let _ = tell.send(Ended {
            file: file.path,
            failure,
        });
    }
}

/// Runs it to its end. Says how it failed.
fn run(program: &Path, file: &Path) -> Option<String> {
    // Not on standard output, which JSON lines go to.
    let stderr = || io::stderr().as_fd().try_clone_to_owned();
    let status = stderr().and_then(|stderr| {
        Command::new(program)
            .arg(file)
            .stdin(Stdio::null())
            .stdout(stderr)
            // Ctrl-C ends the capture, not what works on its files.
            .process_group(0)
            .status()
    });
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(format!("it can't be started: {error}")),
    }
}

#[cfg(test)]
mod tests;
