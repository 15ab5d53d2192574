//! Arguments: parsed and checked into plain plans. Nothing here touches the
//! system.

mod capture;
mod units;

use clap::{Parser, Subcommand};

pub use capture::{CaptureArgs, CapturePlan, Offloads, Target, Verbosity};

/// What the user asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// List the interfaces.
    ListInterfaces,
    /// Capture.
    Capture(Box<CapturePlan>),
}

/// Packet capture whose every timestamp can be trusted
#[derive(Debug, Parser)]
#[command(
    name = "tscap",
    version,
    max_term_width = 100,
    after_long_help = "Exit codes: 0 success, also after Ctrl-C; 1 a failure; 2 wrong arguments; \
                       3 the accounting does not add up (a bug); 130 aborted by a second Ctrl-C"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Capture(Box<CaptureArgs>),
}

impl Cli {
    /// The plan, or what is wrong with the arguments.
    pub fn into_plan(self) -> Result<Plan, clap::Error> {
        match self.command {
            Command::Capture(args) => args.into_plan(),
        }
    }
}

#[cfg(test)]
mod tests;
