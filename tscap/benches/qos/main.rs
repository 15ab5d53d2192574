//! `cargo xtask bench qos`: a million packets a second of ten thousand flows.

mod live;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use tscap_testkit::process::cpus;

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// All of it, between network namespaces
    Live,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "qos",
        version: 1,
        about: "Cost of one packet of ten thousand flows",
        cpu: |cpus| cpus.last(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let _alone = run.alone()?;
        let sender = *cpus().first().context("no CPU to send on")?;
        run.part(Part::Live, |options| {
            let packets = options.either(2_000_000, 5_000_000);
            live::all(options.rounds(2, 5), packets, sender)
        })?;
        Ok(())
    })
}
