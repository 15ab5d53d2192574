//! `cargo xtask bench gen`: how fast and how evenly `tscap gen` sends.
//!
//! Three parts, all over a veth pair whose other end drops by XDP, which runs on
//! the sender's CPU: `flat-out` (against the barest program and `sendmmsg`),
//! `rate` (what is realised of a rate), `gaps` (against a loop that only spins).
//! Every frame sent must have been dropped at the other end: one missing ends the
//! bench with an error.

mod flat_out;
mod gaps;
mod link;
mod rate;
mod report;
mod spin;
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
use common::spread;
use link::Link;
use report::{Report, VERSION};
use support::process::cpus;

/// Rate and regularity of the frame generator
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench gen")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Frames a second, as fast as can be
    FlatOut,
    /// What is realised of a rate
    Rate,
    /// How far gaps are from the period
    Gaps,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "gen",
        &args.options,
        || measure(&args),
        table::render,
        Report::missed,
    )
}

fn measure(args: &Args) -> Result<Report> {
    eprintln!("waiting until no root test is running");
    let _turn = support::root::root("bench gen").context("nothing can be measured")?;
    let options = &args.options;
    // Interrupts prefer the first CPU.
    let cpu = *cpus().last().context("no CPU to run on")?;
    let mut report = Report {
        header: Header::new("gen", VERSION, options, cpu),
        targets: Vec::new(),
        flat_out: None,
        rate: None,
        gaps: None,
    };
    let link = Link::open(cpu)?;
    if args.parts.want(Part::FlatOut) {
        let part = flat_out::measure(&link, options.rounds(5, 10), options.quick)?;
        report.targets.extend(part.targets());
        report.flat_out = Some(part);
    }
    if args.parts.want(Part::Rate) {
        let part = rate::measure(&link, options.rounds(6, 10), options.quick)?;
        report.targets.extend(part.targets());
        report.rate = Some(part);
    }
    if args.parts.want(Part::Gaps) {
        let part = gaps::measure(&link, options)?;
        report.targets.extend(part.targets());
        report.gaps = Some(part);
    }
    Ok(report)
}
