//! `cargo xtask bench clock`: the feed-forward clock, simulated beside a feedback
//! clock, and on this host.
//!
//! Needs no privilege, and never touches the host's clock.

mod host;
mod ntp;
mod pll;
mod script;
mod servo;
mod settling;
mod simulation;
mod subjects;

#[path = "../common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tscap_testkit::process::on_cpu;

use common::run::{Bench, Parts, Run, write};

/// Options of its own.
#[derive(Debug, Args)]
struct Own {
    #[command(flatten)]
    parts: Parts<Part>,
    /// Write a page with the curves of the part `ntp`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl AsRef<Parts<Part>> for Own {
    fn as_ref(&self) -> &Parts<Part> {
        &self.parts
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Scripted counters and servers
    Simulation,
    /// A scripted NTP server, polled every 16 to 1024 s, beside ntpd's loops too
    Ntp,
    /// This host's clocks: widths of brackets, costs
    Host,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "clock",
        version: 3,
        about: "The feed-forward clock beside a feedback clock, and on this host",
        // Interrupts prefer the first CPU.
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Own>| {
        let cpu = run.cpu;
        run.part(Part::Simulation, |options| {
            simulation::measure(options.rounds(3, 10), options.either(3, 12))
        })?;
        let ntp = run.part(Part::Ntp, ntp::measure)?;
        run.part(Part::Host, |options| {
            on_cpu(cpu, || host::measure(options.rounds(5, 10), options.quick))
        })?;
        let Some(ntp) = ntp else { return Ok(()) };
        write(run.own.report.as_deref(), || {
            Ok(ntp::page::render(&run.report, &ntp))
        })
    })
}
