//! `cargo xtask bench merge`: what one frame costs in the converter when several
//! rings have frames, which are then copied in order of time.
//!
//! Frames of 64 bytes, all rings filled beforehand, an output that discards; CPU
//! time of the thread around a drain. Two patterns, each the worst of its kind:
//! every frame on a CPU chosen at random, and bursts as long as a NAPI poll. Two
//! amounts: what comes within about a millisecond, which fits the second-level
//! cache, and more than the last level holds.
//!
//! Then many queues with frames of several lengths, for one converter and for two.

mod measure;
mod queues;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use tscap_testkit::process::{cpus, on_cpu};

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The order of several rings
    Order,
    /// One converter, and two, with many queues
    Queues,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "merge",
        version: 1,
        about: "Cost of one frame when the blocks of several rings are merged",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        if run.own.want(Part::Order) {
            let rounds = run.options.rounds(3, 10);
            let merged = on_cpu(run.cpu, || measure::all(rounds))?;
            run.report.add_whole(&merged)?;
        }
        if run.own.want(Part::Queues) {
            let rounds = run.options.rounds(1, 5);
            let other = cpus().into_iter().find(|cpu| *cpu != run.cpu);
            let other = other.context("a second converter needs a second CPU")?;
            let queues = queues::all(rounds, [run.cpu, other])?;
            run.report.set("queues", &queues)?;
            run.report.add(&queues);
        }
        Ok(())
    })
}
