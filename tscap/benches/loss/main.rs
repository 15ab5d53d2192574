//! `cargo xtask bench loss`: how well `tscap loss` foretells what is lost.
//!
//! Three parts, each with receive work, rings and a writer of its own: `receive` (frames
//! are received on a CPU of their own, and lost before the program), `writer` (the file
//! takes so many bytes a second, and frames are lost in small rings), `both`. The rates
//! are such that much is lost at some points and nothing at others; none of the points
//! is one of the runs by which the costs are found out. Every frame is accounted for, or
//! the bench ends with an error.

mod parts;
mod report;
mod table;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use common::cli::{self, Options, Parts};
use common::header::Header;
use common::stop::stopped_by_signals;
use parts::Part;
use report::{Report, VERSION};
use support::process::cpus;

/// How well losses are foretold
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench loss")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "loss",
        &args.options,
        || measure(&args),
        table::render,
        Report::missed,
    )
}

fn measure(args: &Args) -> Result<Report> {
    let stop = stopped_by_signals()?;
    eprintln!("waiting until no root test is running");
    let _turn = support::root::root("bench loss").context("nothing can be measured")?;
    let options = &args.options;
    let cpus: Vec<u32> = cpus().into_iter().map(|cpu| cpu as u32).collect();
    let [sender, receiver, ..] = cpus[..] else {
        anyhow::bail!("receive work on a CPU of its own takes two CPUs");
    };
    let header = Header::new("loss", VERSION, options, receiver as usize);
    let mut rounds = Vec::new();
    for part in [Part::Receive, Part::Writer, Part::Both] {
        for round in 1..=options.rounds(1, 3) {
            if args.parts.want(part) {
                eprintln!("{part:?}: round {round}");
                rounds.push(part.measure(sender, receiver, options.quick, &stop)?);
            }
        }
    }
    Report::new(header, rounds)
}
