//! `tscap gen`: prepare, send, tell.

mod prepare;
mod report;
mod session;
mod stamps;

use super::{Exit, Failure};
use crate::cli::GenPlan;

/// Sends.
pub(super) fn run(plan: &GenPlan) -> Result<Exit, Failure> {
    super::runtime()?.block_on(session::run(plan))
}
