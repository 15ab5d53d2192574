//! The `tscap` command.

use std::process::ExitCode;

use tscap_cli::Cli;

fn main() -> ExitCode {
    let plan = match Cli::plan(std::env::args_os()) {
        Ok(plan) => plan,
        Err(error) => error.exit(),
    };
    match tscap::command::run(plan) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            tscap::command::say_failure(&failure);
            ExitCode::FAILURE
        }
    }
}
