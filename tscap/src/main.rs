//! The `tscap` command.

use std::process::ExitCode;

use clap::Parser;
use tscap::cli::Cli;

fn main() -> ExitCode {
    let plan = match Cli::parse().into_plan() {
        Ok(plan) => plan,
        Err(error) => error.exit(),
    };
    match tscap::command::run(plan) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("tscap: {failure}");
            ExitCode::FAILURE
        }
    }
}
