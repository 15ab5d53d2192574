//! `cargo xtask bench xdp`: what one frame costs in the XDP program and in the
//! converter, and how large a ring must be.
//!
//! Four parts: `program` (`BPF_PROG_TEST_RUN`, needs root), `offset` (TSC events
//! bracketed on their CPUs, needs root), `converter` (a ring filled in memory),
//! `rings` (live frames over a veth pair, needs root). A count that is off by one
//! frame ends the bench with an error: a figure from such a run is none.

mod converter;
mod offset;
mod program;
mod report;
mod rings;
mod table;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use common::cli::{self, Options, Parts};
use common::header::Header;
use common::{spread, tmpfs};
use report::{Report, VERSION};
use support::process::{cpus, on_cpu};

/// Costs of one frame in tscap, and losses by ring size
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench xdp")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The XDP programs, one frame at a time
    Program,
    /// How closely each CPU's TSC event is held against the TSC
    Offset,
    /// The converter, on a ring filled beforehand
    Converter,
    /// Live frames through rings of several sizes
    Rings,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "xdp",
        &args.options,
        || measure(&args),
        table::render,
        Report::missed,
    )
}

fn measure(args: &Args) -> Result<Report> {
    let needs_root = [Part::Program, Part::Offset, Part::Rings]
        .into_iter()
        .any(|part| args.parts.want(part));
    let _turn = needs_root
        .then(|| {
            eprintln!("waiting until no root test is running");
            support::root::root("bench xdp").context("--only converter runs without root")
        })
        .transpose()?;
    let options = &args.options;
    // Interrupts prefer the first CPU.
    let cpu = *cpus().last().context("no CPU to run on")?;
    let mut report = Report {
        header: Header::new("xdp", VERSION, options, cpu),
        ratios: Vec::new(),
        program: None,
        offset: None,
        converter: None,
        rings: None,
    };
    if args.parts.want(Part::Program) {
        let rounds = options.rounds(3, 10);
        let program = on_cpu(cpu, || program::measure(cpu, rounds))?;
        report.ratios.extend(program.ratios());
        report.program = Some(program);
    }
    if args.parts.want(Part::Offset) {
        report.offset = Some(offset::measure(options.rounds(10, 10))?);
    }
    if args.parts.want(Part::Converter) {
        // Short ones: many even in a quick run.
        let rounds = options.rounds(10, 10);
        report.converter = Some(on_cpu(cpu, || converter::measure(rounds))?);
    }
    if args.parts.want(Part::Rings) {
        report.rings = Some(rings::measure(options.rounds(1, 5), options.quick)?);
    }
    Ok(report)
}
