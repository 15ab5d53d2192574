//! `tscap capture`: prepare, run, account.

mod commands;
mod console;
mod counter;
mod earlier;
mod files;
mod finish;
mod first_brackets;
mod header;
mod live_links;
mod load;
mod offloading;
mod opened;
mod pinning;
pub(super) mod prepare;
mod probe;
mod receiving;
mod session;
mod start;
mod summary;
mod writing;

pub use first_brackets::first_brackets;
pub(super) use prepare::FILE_CAPABILITIES;
pub(super) use probe::probe;
pub use summary::{ClockSummary, CommandsSummary, FilesSummary, InterfaceSummary, Stop, Summary};

use tokio::runtime::Runtime;

use super::console::Console;
use super::{Exit, Failure, Hint as _};
use crate::capturing::hook::PROGRAMS;
use crate::cli::CapturePlan;

/// Which programs to run: what tests replace.
#[derive(Clone, Debug)]
pub struct Programs<'a> {
    /// The eBPF object.
    pub object: &'a [u8],
    /// Name of the program in it; `None` for the one of the clock.
    pub name: Option<&'a str>,
    /// The CPUs that get a ring; `None` for all that are online.
    pub ring_cpus: Option<Vec<u32>>,
}

/// Runs the capture.
pub fn run(plan: &CapturePlan) -> Result<Exit, Failure> {
    let programs = Programs {
        object: PROGRAMS,
        name: None,
        ring_cpus: None,
    };
    run_with(plan, &programs).map(|(exit, _)| exit)
}

/// Runs the capture with other programs than its own.
pub fn run_with(
    plan: &CapturePlan,
    programs: &Programs<'_>,
) -> Result<(Exit, Option<Summary>), Failure> {
    runtime()?.block_on(session::run(plan, programs))
}

/// A tokio runtime on this thread.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    runtime.trying("cannot start the tokio runtime")
}

/// The plan of `tscap capture -i veth0 -w f` with `more` arguments.
#[cfg(test)]
fn plan_of(more: &str) -> CapturePlan {
    use clap::Parser as _;

    use crate::cli::{Cli, Plan};

    let words = ["tscap", "capture", "-i", "veth0", "-w", "f"];
    let words = words.into_iter().chain(more.split_whitespace());
    match Cli::try_parse_from(words).and_then(Cli::into_plan) {
        Ok(Plan::Capture(plan)) => *plan,
        other => panic!("{other:?}"),
    }
}
