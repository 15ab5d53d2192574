//! One runner a command.

pub mod capture;
mod console;
mod failure;
pub mod generate;
mod interfaces;
mod lines;
mod numbers;
mod restore;
mod signals;

pub use failure::{Exit, Failure, Hint};

use crate::cli::Plan;

/// Runs a plan.
pub fn run(plan: Plan) -> Result<Exit, Failure> {
    match plan {
        Plan::ListInterfaces => interfaces::list(),
        Plan::Capture(plan) => capture::run(&plan),
        Plan::Generate(plan) => generate::run(&plan),
        Plan::ReadStreams { file, json } => unreachable!("{file:?} {json}"),
        Plan::Restore => restore::run(),
    }
}
