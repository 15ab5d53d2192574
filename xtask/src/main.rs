//! Development tasks: `cargo xtask --help`.

mod arm64;
mod bench;
mod build_ebpf;
mod capture;
mod cargo;
mod demo;
mod dist;
mod interrupt;
mod leftovers;
mod lint;
mod man;
mod manifest;
mod netns;
mod paths;
mod process;
mod setup;
mod sh;
mod summary;
mod tally;
mod test;
mod times;
mod toolchain;
mod vm;
mod words;

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
    /// Capture real traffic between two network namespaces into out.pcapng
    Demo(demo::Args),
    /// Run the tests; as root, those too that need root
    Test(test::Args),
    /// Check words and formatting, and run clippy
    Lint,
    /// Write the man pages and shell completions that are committed under docs
    Man(man::Args),
    /// Run cargo for arm64, with Debian's packages
    Arm64(arm64::Args),
    /// Run a benchmark
    Bench(bench::Args),
    /// Build the eBPF objects that are committed under tscap/ebpf
    BuildEbpf(build_ebpf::Args),
    /// Build the packages: .deb, .rpm and a tarball, into target/dist
    Dist(dist::Args),
    /// Install what the other tasks need (Debian 12)
    Setup(setup::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Demo(args) => demo::main(&args),
        Task::Test(args) => test::main(&args),
        Task::Lint => lint::main(),
        Task::Man(args) => man::main(&args),
        Task::Arm64(args) => arm64::main(&args),
        Task::Bench(args) => bench::main(&args),
        Task::BuildEbpf(args) => build_ebpf::main(&args),
        Task::Dist(args) => dist::main(&args),
        Task::Setup(args) => setup::main(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
