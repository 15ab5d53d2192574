//! `cargo xtask bench delay`: what one packet costs `tscap delay`.
//!
//! The matcher in memory: a million packets a second in and out, each of which is remembered
//! for a second, so that a million are. CPU time of the thread. And the whole, live: how many
//! packets a second it takes in and out on two CPUs, and what the matcher's thread takes then.

mod live;
mod map;
mod matcher;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use tscap_testkit::process::{cpus, on_cpu};

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The matcher, from memory to memory
    Matcher,
    /// All of it, between network namespaces
    Live,
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
        let _alone = run.own.want(Part::Live).then(|| run.alone()).transpose()?;
        let sender = *cpus().first().context("no CPU to send on")?;
        run.part(Part::Live, |options| {
            let packets = options.either(2_000_000, 5_000_000);
            live::all(options.rounds(2, 5), packets, sender)
        })?;
        Ok(())
    })
}
