//! `tscap report`.

use std::path::PathBuf;

use clap::Args;

use super::Plan;

/// Print a saved comparison, sweep of loss, measurement of delays or log of the clock
///
/// Reads what `tscap compare --json`, `tscap loss --json`, `tscap delay --json` or `tscap
/// clock --log` wrote and prints its tables. Several measurements of delays are shown
/// beside each other. With -o it also writes a page for a browser: one file that loads
/// nothing.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// What `tscap compare --json`, `tscap loss --json`, `tscap delay --json` or `tscap
    /// clock --log` wrote; several only of `tscap delay`
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write a page with tables and charts
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
}

/// What to draw, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPlan {
    /// What was saved; at least one.
    pub files: Vec<PathBuf>,
    /// Where the page goes.
    pub output: Option<PathBuf>,
}

impl ReportArgs {
    pub(super) fn into_plan(self) -> Plan {
        Plan::Report(ReportPlan {
            files: self.files,
            output: self.output,
        })
    }
}
