//! `tscap gen`: prepare, send, tell.

mod prepare;
mod report;
mod session;

use super::{Exit, Failure, Hint};
use crate::cli::GenPlan;

/// Sends.
pub fn run(plan: &GenPlan) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.trying("cannot start the tokio runtime")?;
    runtime.block_on(session::run(plan))
}
