//! One runner a command.

pub mod capture;
mod console;
mod doctor;
mod failure;
pub mod generate;
mod interfaces;
mod lines;
mod numbers;
mod print;
mod restore;
mod signals;
mod streams;

pub use failure::{Exit, Failure, Hint};

use crate::cli::Plan;

/// Runs a plan.
pub fn run(plan: Plan) -> Result<Exit, Failure> {
    match plan {
        Plan::ListInterfaces => interfaces::list(),
        Plan::Capture(plan) => capture::run(&plan),
        Plan::Doctor(plan) => doctor::run(&plan),
        Plan::Generate(plan) => generate::run(&plan),
        Plan::ReadStreams { file, json } => streams::run(&file, json),
        Plan::Restore => restore::run(),
    }
}
