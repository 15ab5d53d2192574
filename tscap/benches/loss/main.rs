//! `cargo xtask bench loss`: how well `tscap loss` predicts what is lost.
//!
//! Three parts, each with receive work, rings and a writer of its own: `receive` (frames
//! are received on a CPU of their own, and lost before the program), `writer` (the file
//! takes so many bytes a second, and frames are lost in small rings), `both`. The rates
//! are such that much is lost at some points and nothing at others; none of the points
//! is one of the runs by which the costs are found out. Every frame is accounted for, or
//! the bench ends with an error.

mod parts;
mod report;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use anyhow::{Result, bail};
use tscap_testkit::process::cpus;

use common::run::{Bench, Parts, Run};
use common::stop::stopped_by_signals;
use parts::Part;
use report::Losses;

fn main() -> ExitCode {
    let bench = Bench {
        name: "loss",
        version: 1,
        about: "How well losses are predicted",
        // The one that receives.
        cpu: |cpus| cpus.get(1),
    };
    bench.run(measure)
}

fn measure(run: &mut Run<Parts<Part>>) -> Result<()> {
    let stop = stopped_by_signals()?;
    let _lock = run.alone()?;
    let cpus: Vec<u32> = cpus().into_iter().map(|cpu| cpu as u32).collect();
    let [sender, receiver, ..] = cpus[..] else {
        bail!("receive work on a CPU of its own takes two CPUs");
    };
    let (options, parts) = (&run.options, &run.own);
    let mut rounds = Vec::new();
    for part in [Part::Receive, Part::Writer, Part::Both] {
        for round in 1..=options.rounds(1, 3) {
            if parts.want(part) {
                eprintln!("{part:?}: round {round}");
                rounds.push(part.measure(sender, receiver, options.quick, &stop)?);
            }
        }
    }
    run.report.add_whole(&Losses::new(rounds, options.quick)?)
}
