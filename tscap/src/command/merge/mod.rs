//! `tscap merge`: captures joined by time.

mod summary;

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

use super::copy_target::CopyTarget;
use super::print::{json_line, say};
use super::{Context as _, Exit, Failure, Hint as _};
use tscap_cli::MergePlan;
use tscap_file::pcapng::{
    CaptureReport, InputReport, MergeError, Merged, Neighbours, ReadError, Source, merge,
};
use tscap_host::process::allow_most_files;
use tscap_host::whole_file::is_one;

/// Version of the JSON object.
const VERSION: u32 = 1;
/// What is written at once, bytes.
const BUFFER: usize = 1 << 20;

#[derive(Debug, Serialize)]
struct Summary {
    event: &'static str,
    v: u32,
    /// Packets in the copy.
    packets: u64,
    /// Interfaces that it describes.
    interfaces: u32,
    files: Vec<InputReport>,
    captures: Vec<CaptureReport>,
    neighbours: Neighbours,
}

pub(super) fn run(plan: &MergePlan) -> Result<Exit, Failure> {
    allow_most_files();
    let files = plan.inputs.iter().map(|path| open(path));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut target = CopyTarget::of(&plan.output)?;
    keeps_its_inputs(plan, &files, target.metadata())?;
    let mode = files.first().map_or(0o600, |(_, about)| about.mode());
    let written = target.write(mode, |to| {
        let sources = plan.inputs.iter().zip(&files);
        let sources = sources.map(|(path, (file, _))| Source {
            name: path.display().to_string(),
            from: file,
        });
        let merged = merge(sources.collect(), BufWriter::with_capacity(BUFFER, to))?;
        for (path, (file, before)) in plan.inputs.iter().zip(&files) {
            if file.metadata()?.len() != before.len() {
                return Err(CopyError::Grown(path.display().to_string()));
            }
        }
        Ok(merged)
    });
    let merged = written.map_err(|error| error.into_failure(plan))?;
    let exit = exit(&merged);
    let (reported, warnings) = (summary::text(&merged, plan), summary::warnings(&merged));
    if !warnings.is_empty() {
        say(&warnings);
    }
    let reported = if !plan.json {
        reported
    } else {
        json_line(&Summary {
            event: "merge",
            v: VERSION,
            packets: merged.packets,
            interfaces: merged.interfaces,
            files: merged.inputs,
            captures: merged.captures,
            neighbours: merged.neighbours,
        })
    };
    target.tell(&reported)?;
    Ok(exit)
}

fn open(path: &Path) -> Result<(File, Metadata), Failure> {
    let name = path.display();
    let file = File::open(path).context(format!("cannot open {name}"));
    let file = match file {
        Err(failure) if fs::metadata(path).is_ok_and(|it| it.is_file()) => {
            Err(failure.hint("for many files allow more open ones (ulimit -n), or merge in steps"))
        }
        file => file,
    }?;
    let about = file.metadata().context(format!("cannot read {name}"))?;
    if about.is_file() {
        Ok((file, about))
    } else {
        Err(Failure::new(format!("cannot merge {name}"))
            .hint("give regular files, not pipes: their ends are read first"))
    }
}

/// Fails if a file is given twice, or would be written over.
fn keeps_its_inputs(
    plan: &MergePlan,
    files: &[(File, Metadata)],
    target: Option<&Metadata>,
) -> Result<(), Failure> {
    let mut known = std::collections::HashMap::new();
    for (path, (_, about)) in plan.inputs.iter().zip(files) {
        let name = path.display();
        if target.is_some_and(|target| is_one(target, about)) {
            return Err(Failure::new(format!(
                "cannot merge {name} into itself: the capture as it was would be lost"
            )))
            .hint("give -w another file");
        }
        if let Some(other) = known.insert((about.dev(), about.ino()), name) {
            let name = path.display();
            return Err(Failure::new(format!(
                "cannot merge {name} with {other}: they are the same file"
            )))
            .hint("give each capture once");
        }
    }
    Ok(())
}

/// Accounts that contradict themselves are a bug; what is missing is a fault of the files.
fn exit(merged: &Merged) -> Exit {
    let (mut inputs, mut captures) = (merged.inputs.iter(), merged.captures.iter());
    let contradicts = inputs.clone().any(|it| !it.contradictions.is_empty());
    if contradicts || captures.clone().any(|it| it.adds_up == Some(false)) {
        return Exit::DoesNotAddUp;
    }
    let is_part = |it: &CaptureReport| !it.missing.is_empty() || it.totals.is_none();
    if inputs.any(|it| !it.is_whole) || captures.any(is_part) {
        Exit::Fault
    } else {
        Exit::Success
    }
}

#[derive(Debug)]
enum CopyError {
    Merge(MergeError),
    Output(io::Error),
    /// An input is longer or shorter than it was.
    Grown(String),
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<MergeError> for CopyError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Copy(error) => Self::Output(error),
            error => Self::Merge(error),
        }
    }
}

impl CopyError {
    fn into_failure(self, plan: &MergePlan) -> Failure {
        match self {
            Self::Output(error) => {
                Failure::from_error(error, format!("cannot write {}", plan.output.display()))
            }
            Self::Grown(name) => Failure::new(format!(
                "cannot merge {name}: its length has changed meanwhile"
            ))
            .hint("wait until the capture has ended"),
            Self::Merge(error) => {
                let hint = hint(&error);
                Failure::from_error(error, "nothing was merged").hint(hint)
            }
        }
    }
}

fn hint(error: &MergeError) -> &'static str {
    match error {
        MergeError::Read {
            error: ReadError::NotPcapng,
            ..
        } => "`editcap -F pcapng` makes a pcapng of files in other formats",
        MergeError::Read { .. } => "merge the other files without it",
        MergeError::Sections(_) => "give the captures that it was made of, one by one",
        MergeError::Untimed(_) => "mergecap -a puts files one behind the other",
        MergeError::ByteOrder { .. } => {
            "`editcap -F pcapng IN OUT` writes a file in this machine's byte order"
        }
        MergeError::Clocks { .. } => "`tscap convert --time-base` turns times into another clock's",
        MergeError::References { .. } => "merge captures of one reference",
        MergeError::OfServer(_) => "merge the captures that such files were made of",
        MergeError::SameWriter { .. } => "give each of the capture's files once",
        MergeError::Contradict { .. } => "one of them was changed since: merge the others",
        MergeError::Interfaces(_) => "merge fewer files",
        MergeError::Copy(_) => "give -w another place",
    }
}
