//! `tscap gen`: prepare, send, tell; `tscap gen --echo`: answer.

mod echo;
mod prepare;
mod report;
mod session;
mod stamps;

use super::{Exit, Failure};
use tscap_cli::{EchoPlan, GenPlan};

pub(super) fn run(plan: &GenPlan) -> Result<Exit, Failure> {
    super::runtime()?.block_on(session::run(plan))
}

pub(super) fn echo(plan: &EchoPlan) -> Result<Exit, Failure> {
    super::runtime()?.block_on(echo::run(plan))
}
