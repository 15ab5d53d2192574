//! `tscap report`.

use std::path::PathBuf;

use clap::Args;

use super::Plan;

/// Print a saved comparison, sweep of loss or log of the clock
///
/// Reads what `tscap compare --json`, `tscap loss --json` or `tscap clock --log` wrote
/// and prints its tables. With -o it also writes a page for a browser: one file that
/// loads nothing.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// What `tscap compare --json`, `tscap loss --json` or `tscap clock --log` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write a page with tables and charts
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
}

/// What to draw, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPlan {
    /// What was saved.
    pub file: PathBuf,
    /// Where the page goes.
    pub output: Option<PathBuf>,
}

impl ReportArgs {
    pub(super) fn into_plan(self) -> Plan {
        Plan::Report(ReportPlan {
            file: self.file,
            output: self.output,
        })
    }
}
