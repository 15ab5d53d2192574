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
mod spin;

#[path = "../common/mod.rs"]
mod common;
use std::process::ExitCode;

use clap::ValueEnum;

use common::run::{Bench, Parts, Run};
use link::Link;

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
    let bench = Bench {
        name: "gen",
        version: 1,
        about: "Rate and regularity of the frame generator",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let _lock = run.alone()?;
        let link = Link::open(run.cpu)?;
        let conditions = format!("senders, receiver and bare loop on CPU {}", run.cpu);
        run.report.conditions.push(conditions);
        run.part(Part::FlatOut, |options| {
            flat_out::measure(&link, options.rounds(5, 10), options.quick)
        })?;
        run.part(Part::Rate, |options| {
            rate::measure(&link, options.rounds(6, 10), options.quick)
        })?;
        run.part(Part::Gaps, |options| gaps::measure(&link, options))?;
        Ok(())
    })
}
