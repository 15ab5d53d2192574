//! `cargo xtask bench delay`: what one packet costs `tscap delay`.
//!
//! The matcher in memory: a million packets a second in and out, each of which is remembered
//! for a second, so that a million are. CPU time of the thread.

mod map;
mod matcher;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use clap::ValueEnum;
use tscap_testkit::process::on_cpu;

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The matcher, from memory to memory
    Matcher,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "delay",
        version: 1,
        about: "Cost of one packet whose delay is measured",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let cpu = run.cpu;
        run.part(Part::Matcher, |options| {
            on_cpu(cpu, || matcher::all(options.rounds(2, 10)))
        })?;
        Ok(())
    })
}
