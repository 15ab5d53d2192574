//! `cargo xtask bench soak`: tscap at work for long, with rotation: nothing lost,
//! every frame of every file in its place, memory flat.
//!
//! Two parts over a veth pair: `load` (ten minutes at 80 % of the highest rate that
//! is found to be lossless) and `hour` (an hour at 100,000 frames a second). Each
//! file is read whole as soon as the next one has begun, and removed.

mod files;
mod highest;
mod memory;
mod report;
mod soak;
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
use report::{Report, VERSION};
use soak::{Load, Rig};

/// Part of the highest lossless rate that `load` sends at.
const PART_OF_HIGHEST: f64 = 0.8;
/// Rate of `hour`, frames a second.
const STEADY: f64 = 100_000.0;
/// Length of a part in a quick run, s.
const QUICK_S: f64 = 6.0;

/// Long captures with rotation: losses, order, memory
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench soak")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Ten minutes at 80 % of the highest lossless rate
    Load,
    /// An hour at 100,000 frames a second
    Hour,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "soak",
        &args.options,
        || measure(&args),
        table::render,
        Report::missed,
    )
}

fn measure(args: &Args) -> Result<Report> {
    eprintln!("waiting until no root test is running");
    let _turn = support::root::root("bench soak").context("nothing can be measured")?;
    let rig = Rig::new()?;
    let quick = args.options.quick;
    let mut report = Report {
        header: Header::new("soak", VERSION, &args.options, rig.converter_cpu),
        targets: Vec::new(),
        highest: None,
        soaks: Vec::new(),
    };
    let mut soak = |name, rate: f64, full: f64, in_bulks| -> Result<()> {
        let seconds = if quick { QUICK_S } else { full };
        eprintln!("{name}: {rate:.0} frames/s for {seconds} s");
        let rate = Some(rate);
        let soak = rig.run(
            name,
            Load {
                rate,
                seconds,
                in_bulks,
            },
        )?;
        report.targets.extend(soak.targets(quick));
        report.soaks.push(soak);
        Ok(())
    };
    if args.parts.want(Part::Load) {
        let highest = highest::find(&rig, quick)?;
        // One by one they do not go as fast.
        soak("load", PART_OF_HIGHEST * highest, 600.0, true)?;
        report.highest = Some(highest);
    }
    if args.parts.want(Part::Hour) {
        soak("hour", STEADY, 3600.0, false)?;
    }
    Ok(report)
}
