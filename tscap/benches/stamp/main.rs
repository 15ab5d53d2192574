//! `cargo xtask bench stamp`: what receive times by `tscap stamp` are worth to chronyd, which
//! has no hardware stamps.
//!
//! Its server and its client are on one machine, in two namespaces: both go by the same clock,
//! so that each offset which the client measures is the error of its stamps. Both run with -x,
//! which keeps them from setting the clock.

mod chrony;
mod receive_times;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use clap::ValueEnum;

use common::run::{Bench, Parts, Run};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Offsets that chronyd measures
    Chrony,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "stamp",
        version: 1,
        about: "Receive times for programs that know nothing of tscap",
        cpu: |cpus| cpus.first(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let _alone = run.alone()?;
        run.part(Part::Chrony, |options| {
            let (rounds, samples) = (options.rounds(2, 10), options.either(100, 600));
            receive_times::measure(rounds, samples)
        })?;
        Ok(())
    })
}
