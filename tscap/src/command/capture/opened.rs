//! The output before the capture starts: opened, and checked to be writable.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::capturing::clock::RealNs;
use crate::capturing::engine::{Names, Output, PreparedFile};
use crate::cli::Target;
use crate::command::{Failure, Hint};

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

/// Opens the output. `None` for a named pipe that nobody reads yet.
pub(super) fn open(target: &Target) -> Result<Option<Opened>, Failure> {
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
            let copy = copy.trying("cannot write to standard output")?;
            Ok(Some(Opened::Stdout(File::from(copy))))
        }
    }
}

fn not_opened(path: &Path, error: io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::ResourceBusy => "give each capture a file of its own",
        _ => "give -w a file in a folder that you may write to",
    };
    Err::<(), _>(error)
        .trying(format!("cannot write to {}", path.display()))
        .expect_err("it is one")
        .hint(hint)
}

/// Opens the first of several files, begun at `start`.
pub(super) fn open_first(names: &mut Names, start: RealNs) -> Result<FirstFile, Failure> {
    let path = names.first(start).trying("cannot name the first file")?;
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

    /// Empties a file; from here on it is this capture's. Also gives the name of
    /// the first of several files, and how the others are named.
    pub(super) fn start(self) -> io::Result<(Output, Option<(PathBuf, Names)>)> {
        match self {
            Self::File(file) => Ok((file.start()?, None)),
            Self::Stdout(file) => Ok((Output::inherited(file)?, None)),
            Self::First(first, names) => Ok((first.file.start()?, Some((first.path, names)))),
        }
    }
}
