//! `cargo xtask bench clock`: the feed-forward clock, simulated beside a feedback
//! clock, and on this host.
//!
//! Needs no privilege, and never touches the host's clock.

mod host;
mod script;
mod servo;
mod simulation;
mod table;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use serde::Serialize;

use common::cli::{self, Options, Parts};
use common::header::Header;
use common::target::{self, Target};
use host::Host;
use simulation::Simulation;
use support::process::{cpus, on_cpu};

/// Version of the schema.
const VERSION: u32 = 2;

/// The feed-forward clock beside a feedback clock, and on this host
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench clock")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Scripted counters and servers
    Simulation,
    /// This host's clocks: widths of brackets, costs
    Host,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Report {
    /// Which bench, how and where; of schema [`VERSION`].
    #[serde(flatten)]
    header: Header,
    /// What is wanted, and what came out.
    targets: Vec<Target>,
    simulation: Option<Simulation>,
    host: Option<Host>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "clock",
        &args.options,
        || measure(&args),
        table::render,
        |report| target::missed(&report.targets),
    )
}

fn measure(args: &Args) -> Result<Report> {
    let options = &args.options;
    // Interrupts prefer the first CPU.
    let cpu = *cpus().last().context("no CPU to run on")?;
    let mut report = Report {
        header: Header::new("clock", VERSION, options, cpu),
        targets: Vec::new(),
        simulation: None,
        host: None,
    };
    if args.parts.want(Part::Simulation) {
        let hours = if options.quick { 3 } else { 12 };
        let simulation = simulation::measure(options.rounds(3, 10), hours)?;
        report.targets.extend(simulation.targets());
        report.simulation = Some(simulation);
    }
    if args.parts.want(Part::Host) {
        let rounds = options.rounds(5, 10);
        let host = on_cpu(cpu, || host::measure(rounds, options.quick))?;
        report.targets.extend(host.targets());
        report.host = Some(host);
    }
    Ok(report)
}
