//! `cargo xtask bench filter`: what a filter costs the receiving side for a frame that
//! it rejects, and for one that it accepts.
//!
//! Two parts, both as root: `program` (`BPF_PROG_TEST_RUN` on one frame), and `live`
//! (frames over a veth pair into tscap and into tcpdump with the same expression). A
//! count that is off by one frame ends the bench with an error.

mod expressions;
mod live;
mod program;

#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

use clap::ValueEnum;
use tscap_testkit::process::on_cpu;

use common::run::{Bench, Parts, Run};
use common::stop::stopped_by_signals;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The XDP program with a filter, one frame at a time
    Program,
    /// Live frames, beside tcpdump
    Live,
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "filter",
        version: 1,
        about: "Cost of a capture filter, for frames that it rejects and accepts",
        // The sender's of the live frames: the one that `tscap compare` takes.
        cpu: |cpus| cpus.first(),
    };
    bench.run(|run: &mut Run<Parts<Part>>| {
        let stop = stopped_by_signals()?;
        let _lock = run.alone()?;
        let cpu = run.cpu;
        // libpcap takes half a minute to compile the last one.
        let expressions = run.options.either(3, 4);
        run.part(Part::Program, |options| {
            on_cpu(cpu, || {
                program::measure(cpu, expressions, options.rounds(5, 20))
            })
        })?;
        run.part(Part::Live, |options| {
            let amount = options.either(&live::QUICK, &live::FULL);
            let rounds = options.rounds(amount.rounds, amount.rounds);
            live::measure(cpu, expressions, amount, rounds, stop)
        })?;
        Ok(())
    })
}
