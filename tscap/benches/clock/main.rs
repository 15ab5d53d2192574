//! `cargo xtask bench clock`: the feed-forward clock, simulated beside a feedback
//! clock, and on this host.
//!
//! Needs no privilege, and never touches the host's clock.

mod host;
mod pll;
mod polling;
mod script;
mod servo;
mod settling;
mod simulation;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use clap::ValueEnum;
use tscap_testkit::process::on_cpu;

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Scripted counters and servers
    Simulation,
    /// The same over the polling period, beside ntpd's loop
    Polling,
    /// This host's clocks: widths of brackets, costs
    Host,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "clock",
        version: 2,
        about: "The feed-forward clock beside a feedback clock, and on this host",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let cpu = run.cpu;
        run.part(Part::Simulation, |options| {
            simulation::measure(options.rounds(3, 10), options.either(3, 12))
        })?;
        run.part(Part::Polling, |options| {
            polling::measure(options.rounds(2, 5), options.either(1, 7))
        })?;
        run.part(Part::Host, |options| {
            on_cpu(cpu, || host::measure(options.rounds(5, 10), options.quick))
        })?;
        Ok(())
    })
}
