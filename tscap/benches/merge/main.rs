//! `cargo xtask bench merge`: what one frame costs in the converter when several
//! rings have frames, which are then copied in order of time.
//!
//! Frames of 64 bytes, all rings filled beforehand, an output that discards; CPU
//! time of the thread around a drain. Two patterns, each the worst of its kind:
//! every frame on a CPU chosen at random, and bursts as long as a NAPI poll. Two
//! amounts: what comes within about a millisecond, which fits the second-level
//! cache, and more than the last level holds.

mod measure;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use tscap_testkit::process::on_cpu;

use common::run::{Bench, Run};

fn main() -> ExitCode {
    let bench = Bench {
        name: "merge",
        version: 1,
        about: "Cost of one frame when the blocks of several rings are merged",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<()>| {
        let rounds = run.options.rounds(3, 10);
        let merged = on_cpu(run.cpu, || measure::all(rounds))?;
        run.report.add_whole(&merged)
    })
}
