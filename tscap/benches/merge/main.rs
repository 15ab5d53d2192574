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

use anyhow::{Context, Result};
use clap::Parser;
use serde::Serialize;

use common::cli::{self, Options};
use common::header::Header;
use measure::Cell;
use support::process::{cpus, on_cpu};

/// Version of the schema.
const VERSION: u32 = 1;

/// Cost of one frame when the blocks of several rings are merged
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench merge")]
struct Args {
    #[command(flatten)]
    options: Options,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Report {
    /// Which bench, how and where; of schema [`VERSION`].
    #[serde(flatten)]
    header: Header,
    /// Rounds measured.
    rounds: u32,
    /// One for each number of rings, amount and pattern.
    cells: Vec<Cell>,
}

fn main() -> ExitCode {
    let options = Args::parse().options;
    cli::main(
        "merge",
        &options,
        || measure(&options),
        table::render,
        Report::missed,
    )
}

fn measure(options: &Options) -> Result<Report> {
    // Interrupts prefer the first CPU.
    let cpu = *cpus().last().context("no CPU to run on")?;
    let rounds = options.rounds(3, 10);
    Ok(Report {
        header: Header::new("merge", VERSION, options, cpu),
        rounds,
        cells: on_cpu(cpu, || measure::all(rounds))?,
    })
}

impl Report {
    fn missed(&self) -> Vec<String> {
        let missed = self.cells.iter().filter(|cell| cell.is_too_dear());
        missed.map(Cell::name).collect()
    }
}
