//! The output before the capture starts: opened, and checked to be writable.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;

use super::commands;
use super::event::Reporter;
use super::plan::{Capture, Target};
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::RealNs;
use tscap_engine::{Io, Names, NewName, Output, PreparedFile, RotationPlan};
use tscap_host::access::Owner;

/// How often the reader of a named pipe is looked for.
const READER_EVERY: Duration = Duration::from_millis(50);

/// The output, opened but not touched yet.
#[derive(Debug)]
pub(super) enum Opened {
    File(PreparedFile),
    Stdout(File),
    /// The first of several files, and how they are named.
    First(FirstFile, Names),
}

/// The first of several files.
#[derive(Debug)]
pub(super) struct FirstFile {
    file: PreparedFile,
    pub path: PathBuf,
}

/// Opens the output of each writer of `plan`; waits for the reader of a named pipe.
pub(super) async fn open(
    plan: &Capture,
    reporter: &mut Reporter<'_>,
) -> Result<Vec<Opened>, Failure> {
    let mut opened = Vec::new();
    if plan.writers > 1 {
        check_regular(&plan.target)?;
    }
    for target in &plan.targets() {
        opened.push(match (&plan.rotation, target) {
            (Some(rotation), Target::Path(path)) => first_of_several(rotation, path, reporter)?,
            _ => open_one(target, reporter).await?,
        });
    }
    Ok(opened)
}

/// Refuses devices and pipes, beside which no files are wanted.
fn check_regular(target: &Target) -> Result<(), Failure> {
    match target {
        Target::Path(path) if path.metadata().is_ok_and(|data| !data.is_file()) => {
            let path = path.display();
            Err(Failure::new(format!(
                "cannot write the files of several writers beside {path}: it is no regular file"
            ))
            .hint("give -w the name of a file, or leave out --writers"))
        }
        _ => Ok(()),
    }
}

async fn open_one(target: &Target, reporter: &mut Reporter<'_>) -> Result<Opened, Failure> {
    let mut is_reported = false;
    loop {
        if let Some(opened) = open_now(target)? {
            return Ok(opened);
        }
        if !is_reported {
            reporter.note(&format!("waiting for a reader of {target}"));
            is_reported = true;
        }
        tokio::time::sleep(READER_EVERY).await;
    }
}

/// Opens the first of several files, before the capture's own start is known.
fn first_of_several(
    plan: &RotationPlan,
    template: &Path,
    reporter: &mut Reporter<'_>,
) -> Result<Opened, Failure> {
    if let Some(program) = &plan.command {
        commands::check(program)?;
    }
    let mut names = Names::new(template, plan.naming, TimeZone::system());
    if names.are_all_one() {
        reporter.note("all files have the same name: each takes the place of the one before");
    }
    Ok(Opened::First(open_first(&mut names, RealNs::now())?, names))
}

/// Opens the output. `None` for a named pipe that nobody reads yet.
fn open_now(target: &Target) -> Result<Option<Opened>, Failure> {
    match target {
        Target::Path(path) => match PreparedFile::open(path) {
            Ok(file) => Ok(Some(Opened::File(file))),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(None),
            Err(error) => Err(not_opened(path, error)),
        },
        Target::Stdout => {
            if io::stdout().is_terminal() {
                return Err(Failure::new("cannot write pcapng to a terminal")
                    .hint("pipe it into a reader: tscap capture … -w - | tshark -r -"));
            }
            // Straight to the descriptor: Rust's own stdout would buffer lines.
            let copy = io::stdout().as_fd().try_clone_to_owned();
            let copy = copy.context("cannot write to standard output")?;
            Ok(Some(Opened::Stdout(File::from(copy))))
        }
    }
}

fn not_opened(path: &Path, error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::ResourceBusy => "give each capture a file of its own",
        _ => "give -w a file in a folder that you may write to",
    };
    Failure::from_error(error, format!("cannot write to {}", path.display())).hint(hint)
}

/// Opens the first of several files, begun at `start`.
fn open_first(names: &mut Names, start: RealNs) -> Result<FirstFile, Failure> {
    let path = names.first(start).context("cannot name the first file")?;
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        return Err(Failure::new(format!(
            "cannot write several files to {}: it is no regular file",
            path.display()
        ))
        .hint("give -w the name of a file, or leave out -C, -G and -b"));
    }
    match PreparedFile::open(&path) {
        Ok(file) => Ok(FirstFile { file, path }),
        Err(error) => Err(not_opened(&path, error)),
    }
}

impl Opened {
    /// The same for a capture that starts at `start`: that time may be part of
    /// the first file's name.
    pub(super) fn at(self, start: RealNs) -> Result<Self, Failure> {
        match self {
            Self::First(first, mut names) => {
                let first = match names.first(start) {
                    Ok(path) if path == first.path => first,
                    _ => open_first(&mut names, start)?,
                };
                Ok(Self::First(first, names))
            }
            other => Ok(other),
        }
    }

    /// Gives a new file to `owner`.
    pub(super) fn give_to(&self, owner: Owner) -> io::Result<()> {
        match self {
            Self::File(file) => file.give_to(owner),
            Self::First(first, _) => first.file.give_to(owner),
            Self::Stdout(_) => Ok(()),
        }
    }

    /// The name of a file made for this, which goes unless it is kept.
    pub(super) fn take_new_name(&mut self) -> Option<NewName> {
        match self {
            Self::File(file) | Self::First(FirstFile { file, .. }, _) => file.take_new_name(),
            Self::Stdout(_) => None,
        }
    }

    /// Empties a file; from here on it is this capture's. Also gives the name of
    /// the first of several files, and how the others are named.
    pub(super) fn start(self, io: Io) -> io::Result<(Output, Option<(PathBuf, Names)>)> {
        match self {
            Self::File(file) => Ok((file.start(io)?, None)),
            Self::Stdout(file) => Ok((Output::inherited(file)?, None)),
            Self::First(first, names) => Ok((first.file.start(io)?, Some((first.path, names)))),
        }
    }
}
