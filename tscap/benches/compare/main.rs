//! `cargo xtask bench compare`: whether `tscap compare` can be believed.
//!
//! Three parts, each with real frames over a veth pair: `power` (a program that is
//! somewhat dearer is found, the same program twice isn't told apart), `linearity` (a
//! read more costs what a read costs), `repeats` (comparisons don't contradict each
//! other). Every frame sent must have been measured: one missing ends the bench
//! with an error.

mod line;
mod linearity;
mod power;
mod repeats;
mod report;
mod rig;
mod table;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use tscap::measuring::compare::Amount;

use common::cli::{self, Options, Parts};
use common::header::Header;
use report::{Report, VERSION};
use rig::Rig;
use support::process::{cpus, on_cpu};

/// Between `tscap compare --quick` and its default: what 10 rounds can decide a
/// shared machine undoes.
const QUICK: Amount = Amount {
    rounds: 16,
    ..Amount::QUICK
};

/// Whether the comparison can be believed
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench compare")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Whether what is dearer is found
    Power,
    /// Whether reads add up
    Linearity,
    /// Whether comparisons agree
    Repeats,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "compare",
        &args.options,
        || measure(&args),
        table::render,
        Report::missed,
    )
}

fn measure(args: &Args) -> Result<Report> {
    eprintln!("waiting until no root test is running");
    let _turn = support::root::root("bench compare").context("nothing can be measured")?;
    let options = &args.options;
    // The one that `tscap compare` takes.
    let cpu = *cpus().first().context("no CPU to run on")?;
    let mut report = Report {
        header: Header::new("compare", VERSION, options, cpu),
        targets: Vec::new(),
        power: None,
        linearity: None,
        repeats: None,
    };
    on_cpu(cpu, || frames(args, &mut report))?;
    if args.parts.want(Part::Repeats) {
        let part = repeats::measure(options.rounds(3, 20))?;
        report.targets.extend(part.targets());
        report.repeats = Some(part);
    }
    Ok(report)
}

/// The parts whose frames this thread sends.
fn frames(args: &Args, report: &mut Report) -> Result<()> {
    let options = &args.options;
    let amount = if options.quick {
        &QUICK
    } else {
        &Amount::DEFAULT
    };
    let rig = Rig::open(u32::try_from(report.header.machine.cpu)?)?;
    if args.parts.want(Part::Power) {
        let part = power::measure(&rig, amount, options.rounds(5, 10), options.quick)?;
        report.targets.extend(part.targets(options.quick));
        report.power = Some(part);
    }
    if args.parts.want(Part::Linearity) {
        let part = linearity::measure(&rig, amount)?;
        report.targets.extend(part.targets());
        report.linearity = Some(part);
    }
    Ok(())
}
