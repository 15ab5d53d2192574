//! `cargo xtask bench xdp`: what one frame costs in the XDP program and in the
//! converter, and how large a ring must be.
//!
//! Four parts: `program` (`BPF_PROG_TEST_RUN`, needs root), `offset` (TSC events
//! bracketed on their CPUs, needs root), `converter` (a ring filled in memory),
//! `rings` (live frames over a veth pair, needs root). A count that is off by one
//! frame ends the bench with an error: a figure from such a run is none.

mod converter;
mod offset;
mod program;
mod rings;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use tscap_testkit::process::{cpus, on_cpu};

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The XDP programs, one frame at a time
    Program,
    /// How closely each CPU's TSC event is held against the TSC
    Offset,
    /// The converter, on a ring filled beforehand
    Converter,
    /// Live frames through rings of several sizes
    Rings,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "xdp",
        version: 1,
        about: "Costs of one frame in tscap, and losses by ring size",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let mut rooted = [Part::Program, Part::Offset, Part::Rings].into_iter();
        let needs_root = rooted.any(|part| run.own.want(part));
        let lock = needs_root.then(|| run.alone()).transpose();
        let _lock = lock.context("--only converter runs without root")?;
        let cpu = run.cpu;
        let program = run.part(Part::Program, |options| {
            on_cpu(cpu, || program::measure(cpu, options.rounds(3, 10)))
        })?;
        let ratios = program.map(|program| program.ratios());
        run.report.set("ratios", &ratios.unwrap_or_default())?;
        run.part(Part::Offset, |options| {
            offset::measure(options.rounds(10, 10))
        })?;
        // Short rounds: many even in a quick run.
        run.part(Part::Converter, |options| {
            let other = cpus().into_iter().find(|it| *it != cpu);
            on_cpu(cpu, || converter::measure(options.rounds(10, 10), other))
        })?;
        run.part(Part::Rings, |options| {
            rings::measure(options.rounds(1, 5), options.quick)
        })?;
        Ok(())
    })
}
