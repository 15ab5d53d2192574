//! `cargo xtask bench clock`: the feed-forward clock, simulated beside a feedback
//! clock, and on this host.
//!
//! Needs no privilege but for the parts `chrony` and `distances`, and never touches the host's clock.

mod chrony;
mod distances;
mod host;
mod ntp;
mod pll;
mod read;
mod script;
mod servo;
mod settling;
mod simulation;
mod subjects;

#[path = "../common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
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
    /// Where Debian's package chrony is unpacked, for the part `chrony` [default: /]
    #[arg(long, value_name = "FOLDER")]
    chrony: Option<PathBuf>,
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
    /// chronyd and tscap's own client, which follow a real server in another namespace, for
    /// half an hour; measured only if it is named (root)
    Chrony,
    /// An NTP server behind routers and slow links, for eight minutes; measured only if it is named
    /// (root)
    Distances,
    /// This host's clocks: widths of brackets, costs
    Host,
    /// A clock that programs read, beside `clock_gettime`
    Read,
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
        run.part(Part::Read, |options| {
            on_cpu(cpu, || read::measure(options.rounds(5, 20)))
        })?;
        if run.own.parts.names(Part::Distances) {
            let _lock = run.alone()?;
            run.part(Part::Distances, distances::measure)?;
        }
        if run.own.parts.names(Part::Chrony) {
            beside_chrony(run)?;
        }
        let Some(ntp) = ntp else { return Ok(()) };
        write(run.own.report.as_deref(), || {
            Ok(ntp::page::render(&run.report, &ntp))
        })
    })
}

/// Measures the part `chrony`, or says why not.
fn beside_chrony(run: &mut Run<Own>) -> Result<()> {
    match chrony::Programs::find(run.own.chrony.as_deref()) {
        Ok(programs) => {
            let _lock = run.alone()?;
            run.part(Part::Chrony, |options| chrony::measure(&programs, options))?;
        }
        Err(why) => {
            let skipped = format!("chrony: skipped: {why:#}");
            run.report.set("chrony_skipped", &skipped)?;
            run.report.conditions.push(skipped);
        }
    }
    Ok(())
}
