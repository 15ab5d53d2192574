//! `tscap merge`.

use std::path::PathBuf;

use clap::Args;

use super::Plan;
use super::foreign::{ANSWERED, ForeignArgs, OfMerge};

/// Join captures by time into one pcapng
///
/// Every frame and its options are kept byte for byte; those of the same time stand in
/// the order of the files. Files of any program can be joined that are pcapng. Files
/// that several writers of one capture wrote become one again: their interfaces are
/// joined, and the account of the whole, which is the sum of theirs, is checked. A writer
/// of which no file is given is named. The interfaces of other captures stay apart.
///
/// The summary says between how many neighbours of different files the bounds of the
/// stamps do not decide which frame was first.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("merge", ""))]
pub struct MergeArgs {
    /// Captures to join
    #[arg(value_name = "FILE", required_unless_present = ANSWERED)]
    files: Vec<PathBuf>,

    /// File to write, or - for standard output; the summary then goes to standard
    /// error
    #[arg(
        short,
        long = "write",
        value_name = "OUT.pcapng",
        required_unless_present = ANSWERED
    )]
    write: Option<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    foreign: ForeignArgs<OfMerge>,
}

/// What to join, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// The captures.
    pub inputs: Vec<PathBuf>,
    /// The copy; - is standard output.
    pub output: PathBuf,
    /// Whether to say what was done in JSON.
    pub json: bool,
}

impl MergeArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        self.foreign.check()?;
        Ok(Plan::Merge(MergePlan {
            inputs: self.files,
            output: self.write.unwrap_or_default(),
            json: self.json,
        }))
    }
}
