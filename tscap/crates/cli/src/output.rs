//! How the result of a measurement is told.

use std::path::PathBuf;

use clap::Args;

use super::Verbosity;

/// Where a result goes, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultOutput {
    /// As JSON instead of text.
    pub json: bool,
    /// The text is all of it, not the answer alone.
    pub verbose: bool,
    /// Also as a page, in this file.
    pub report: Option<PathBuf>,
}

/// What is told of a measurement that works now or reads a file.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// No table while it runs
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON objects, one a line: each second of a live measurement, and the result
    #[arg(long)]
    pub json: bool,

    /// At the end, write a page for a browser
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

impl OutputArgs {
    pub fn verbosity(&self) -> Verbosity {
        if self.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::Normal
        }
    }

    pub fn output(self, verbose: bool) -> ResultOutput {
        ResultOutput {
            json: self.json,
            verbose,
            report: self.report,
        }
    }
}
