//! The `tscap` command.

use std::io::Write as _;
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
            // Nobody may be left to read it.
            let _ = writeln!(std::io::stderr(), "tscap: {failure}");
            ExitCode::FAILURE
        }
    }
}
