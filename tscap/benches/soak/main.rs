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

#[path = "../common/mod.rs"]
mod common;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};

use common::run::{Bench, Parts, Run};
use report::Soaks;
use soak::{Load, TestBed};

/// Part of the highest lossless rate that `load` sends at.
const PART_OF_HIGHEST: f64 = 0.8;
/// Rate of `hour`, frames a second.
const STEADY: f64 = 100_000.0;
/// Length of a part in a quick run, s.
const QUICK_S: f64 = 6.0;

/// Options of its own.
#[derive(Debug, Args)]
struct Own {
    #[command(flatten)]
    parts: Parts<Part>,
    /// Write the files to this folder, of a disk that takes direct writes [default: memory]
    #[arg(long, value_name = "FOLDER")]
    disk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Ten minutes at 80 % of the highest lossless rate
    Load,
    /// An hour at 100,000 frames a second
    Hour,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "soak",
        version: 1,
        about: "Long captures with rotation: losses, order, memory",
        cpu: |cpus| cpus.last(),
    };
    bench.run(measure)
}

fn measure(run: &mut Run<Own>) -> Result<()> {
    let _lock = run.alone()?;
    let bed = TestBed::new(run.cpu, run.own.disk.as_deref())?;
    let quick = run.options.quick;
    let mut soaks = Soaks::new(quick);
    let soak = |name, rate: f64, full: f64, in_bulks| {
        let seconds = if quick { QUICK_S } else { full };
        eprintln!("{name}: {rate:.0} frames/s for {seconds} s");
        let load = Load {
            rate: Some(rate),
            seconds,
            in_bulks,
        };
        bed.run(name, load)
    };
    if run.own.parts.want(Part::Load) {
        let highest = highest::find(&bed, quick)?;
        // One by one they do not go as fast.
        let load = soak("load", PART_OF_HIGHEST * highest, 600.0, true)?;
        soaks.soaks.push(load);
        soaks.highest = Some(highest);
    }
    if run.own.parts.want(Part::Hour) {
        soaks.soaks.push(soak("hour", STEADY, 3600.0, false)?);
    }
    run.report.add_whole(&soaks)
}
