//! One runner a command.

pub mod capture;
mod failure;
mod interfaces;
mod restore;

pub use failure::{Exit, Failure, Hint};

use crate::cli::Plan;

/// Runs a plan.
pub fn run(plan: Plan) -> Result<Exit, Failure> {
    match plan {
        Plan::ListInterfaces => interfaces::list(),
        Plan::Capture(plan) => capture::run(&plan),
        Plan::Restore => restore::run(),
    }
}
