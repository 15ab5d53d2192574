//! Development tasks: `cargo xtask --help`.

mod build_ebpf;
mod manifest;
mod paths;
mod sh;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of tscap.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the eBPF objects that are committed under tscap/ebpf
    BuildEbpf(build_ebpf::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::BuildEbpf(args) => build_ebpf::main(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
