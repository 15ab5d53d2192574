//! `cargo xtask bench compare`: whether `tscap compare` can be believed.
//!
//! Three parts, each with real frames over a veth pair: `power` (a program that is
//! somewhat more expensive is found, the same program twice isn't told apart), `linearity` (a
//! read more costs what a read costs), `repeats` (comparisons don't contradict each
//! other). Every frame sent must have been measured: one missing ends the bench
//! with an error.

mod bed;
mod linearity;
mod power;
mod repeats;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use tscap_lab::compare::Amount;
use tscap_testkit::process::on_cpu;

use bed::TestBed;
use common::run::{Bench, Parts, Run};

/// Between `tscap compare --quick` and its default: what 10 rounds can decide a
/// shared machine undoes.
const QUICK: Amount = Amount {
    rounds: 16,
    ..Amount::QUICK
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Whether what is more expensive is found
    Power,
    /// Whether reads add up
    Linearity,
    /// Whether comparisons agree
    Repeats,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "compare",
        version: 1,
        about: "Whether the comparison can be believed",
        // The one that `tscap compare` takes.
        cpu: |cpus| cpus.first(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let _lock = run.alone()?;
        let conditions = format!("measured on CPU {}", run.cpu);
        run.report.conditions.push(conditions);
        on_cpu(run.cpu, || frames(run))?;
        run.part(Part::Repeats, |options| {
            repeats::measure(options.rounds(3, 20))
        })?;
        Ok(())
    })
}

/// The parts whose frames this thread sends.
fn frames(run: &mut Run<Parts<Part>>) -> Result<()> {
    let amount = run.options.either(&QUICK, &Amount::DEFAULT);
    let bed = TestBed::open(u32::try_from(run.cpu)?)?;
    run.part(Part::Power, |options| {
        power::measure(&bed, amount, options.rounds(5, 10), options.quick)
    })?;
    run.part(Part::Linearity, |_| linearity::measure(&bed, amount))?;
    Ok(())
}
