//! `tscap report`.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::{Cli, Plan};

/// Print a saved comparison, sweep of loss, measurement of delays or of flows, or log of the clock
///
/// Reads what `tscap compare --json`, `tscap compare --observer --json`, `tscap loss --json`,
/// `tscap delay --json`, `tscap qos --json`, `tscap counters --json` or `tscap clock --log` wrote
/// and prints its tables. Several measurements
/// of delays are shown beside each other. With -o it also writes a page for a browser: one file
/// that loads nothing. With --paper it tells a comparison and a sweep in the order of the
/// papers, beside their figures.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("report", ""))]
pub struct ReportArgs {
    /// What `tscap compare --json`, `tscap loss --json`, `tscap delay --json`, `tscap qos
    /// --json` or `tscap clock --log` wrote; several only of `tscap delay`, or with --paper a comparison and a sweep
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// In the order of the papers: Tables I and II and Figs. 2 to 6 of Orosz and Skopkó (2013),
    /// then the four sessions of Skopkó's loss analysis, with the conditions here and there
    #[arg(long)]
    paper: bool,

    /// Print all of it: every table, the whole machine, and the papers' figures beside
    #[arg(short, long)]
    verbose: bool,

    /// Write a page with tables and charts
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
}

/// What to draw, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPlan {
    /// What was saved: at least one file; for the papers at most two.
    pub files: Vec<PathBuf>,
    /// In the order of the papers.
    pub paper: bool,
    /// Print all of it.
    pub verbose: bool,
    /// Where the page goes.
    pub output: Option<PathBuf>,
}

impl ReportArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        if self.files.len() > 2 && self.paper {
            return Err(Cli::command().error(
                ErrorKind::TooManyValues,
                format!(
                    "--paper takes a comparison and a sweep of loss, without {}",
                    self.files[2].display()
                ),
            ));
        }
        Ok(Plan::Report(ReportPlan {
            files: self.files,
            paper: self.paper,
            verbose: self.verbose,
            output: self.output,
        }))
    }
}
