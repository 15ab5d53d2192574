//! `tscap compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Plan, ResultOutput, units};
use tscap_lab::compare::Amount;
use tscap_lab::observer;

/// Longest wait for live frames unless one is given.
const TIMEOUT: &str = "10";

/// Compare what a stamp costs on this machine: ktime, TAI, TSC
///
/// Repeats the experiment of Orosz & Skopkó (2013): the cost of one read of each
/// clock by itself, on real frames between two checkpoints, and in a whole capture
/// program; the precision of the stamps on the paper's two patterns; the highest
/// rate without loss, and loss against frame size and gap. Every clock takes its
/// turn in every round.
///
/// Without -i it sends frames through a veth pair in namespaces of its own and
/// removes them at the end. With -i it measures on what an interface receives, in
/// native mode, and sends nothing: it measures neither precision nor loss then.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("compare", ""))]
pub struct CompareArgs {
    /// Measure on the frames that this interface receives
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// Take about half a minute; the output says which difference that can find
    #[arg(long, conflicts_with = "paper")]
    quick: bool,

    /// Measure the paper's 20,000 frames of each pattern a round: takes hours (the
    /// estimate is printed first)
    #[arg(long)]
    paper: bool,

    /// CPU to receive and stamp on [default: the first one allowed]; with -i, frames
    /// that arrive on another CPU are not measured
    #[arg(long, value_name = "CPU", value_parser = units::cpu)]
    cpu: Option<u32>,

    /// With -i: longest wait for the frames of one turn
    #[arg(long, value_name = "TIME", default_value = TIMEOUT, value_parser = units::duration)]
    timeout: Duration,

    /// Measure the TSC even where its rate is not known to be constant
    #[arg(long)]
    force: bool,

    /// Also measure ktime and the cheapest read of the TSC with the CPU's interrupts
    /// turned off around the stamp, as Orosz & Skopkó did: its cost, and whether the
    /// slowest stamps become faster (kernel 6.14)
    #[arg(long)]
    irqs_off: bool,

    /// Instead, measure what a capture does to traffic that passes: the round trip and the
    /// throughput of two programs, and the CPU time of that, with no capture, tscap,
    /// tcpdump, dumpcap and netsniff-ng in turns
    #[arg(long, conflicts_with_all = ["interface", "paper", "irqs_off", "force"])]
    observer: bool,

    /// Print all of the result: every table, the whole machine, and the paper's figures beside
    #[arg(short, long)]
    verbose: bool,

    /// Write everything as one JSON object to standard output
    #[arg(long)]
    json: bool,

    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// A comparison, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparePlan {
    /// Interface with live traffic; `None` for a pair of our own.
    pub interface: Option<String>,
    /// How much to measure.
    pub amount: Amount,
    /// CPU to measure on.
    pub cpu: Option<u32>,
    /// Longest wait for live frames.
    pub timeout: Duration,
    /// Take the TSC as it is.
    pub force: bool,
    /// How it is told.
    pub output: ResultOutput,
}

/// What captures do to passing traffic, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObserverPlan {
    /// How much to measure.
    pub amount: observer::Amount,
    /// CPU of the program that asks and sends.
    pub cpu: Option<u32>,
    /// How it is told.
    pub output: ResultOutput,
}

impl CompareArgs {
    pub(super) fn into_plan(self) -> Plan {
        if self.observer {
            return Plan::Observer(ObserverPlan {
                amount: if self.quick {
                    observer::Amount::QUICK
                } else {
                    observer::Amount::DEFAULT
                },
                cpu: self.cpu,
                output: ResultOutput {
                    json: self.json,
                    verbose: self.verbose,
                    report: self.report,
                },
            });
        }
        Plan::Compare(ComparePlan {
            interface: self.interface,
            amount: Amount {
                irqs_off: self.irqs_off,
                ..match (self.quick, self.paper) {
                    (true, _) => Amount::QUICK,
                    (_, true) => Amount::PAPER,
                    _ => Amount::DEFAULT,
                }
            },
            cpu: self.cpu,
            timeout: self.timeout,
            force: self.force,
            output: ResultOutput {
                json: self.json,
                verbose: self.verbose,
                report: self.report,
            },
        })
    }
}
