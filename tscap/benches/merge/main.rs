//! `cargo xtask bench merge`: what one frame costs in the converter when several
//! rings have frames, which are then copied in order of time.
//!
//! Frames of 64 bytes, all rings filled beforehand, an output that discards; CPU
//! time of the thread around a drain. Two patterns, each the worst of its kind:
//! every frame on a CPU chosen at random, and bursts as long as a NAPI poll. Two
//! amounts: what comes within about a millisecond, which fits the second-level
//! cache, and more than the last level holds.

mod measure;
mod table;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde::Serialize;

use common::machine::{self, Machine};
use measure::Cell;
use support::process::{cpus, on_cpu};

/// Version of the schema.
const VERSION: u32 = 1;

/// Cost of one frame when the blocks of several rings are merged
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench merge")]
struct Args {
    /// A short run for CI
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Rounds [default: 10; with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Fail when a median misses its target
    #[arg(long)]
    assert: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Report {
    /// [`VERSION`].
    v: u32,
    /// Which bench this is.
    bench: &'static str,
    /// Whether it was a short run.
    quick: bool,
    /// Where it ran.
    machine: Machine,
    /// Rounds measured.
    rounds: u32,
    /// One for each number of rings, amount and pattern.
    cells: Vec<Cell>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !args.bench {
        // `cargo test --all-targets` runs benches too.
        eprintln!("not measuring: this is for `cargo bench`");
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench merge: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    // Interrupts prefer the first CPU.
    let cpu = *cpus().last().context("no CPU to run on")?;
    let rounds = args.rounds.unwrap_or(if args.quick { 3 } else { 10 });
    let report = Report {
        v: VERSION,
        bench: "merge",
        quick: args.quick,
        machine: machine::describe(cpu),
        rounds,
        cells: on_cpu(cpu, || measure::all(rounds))?,
    };
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{}", table::render(&report));
    }
    let missed = report.cells.iter().filter(|cell| cell.is_missed());
    let missed: Vec<_> = missed.map(Cell::name).collect();
    if args.assert && !missed.is_empty() {
        bail!("target missed: {}", missed.join("; "));
    }
    Ok(())
}
