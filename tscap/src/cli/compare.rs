//! `tscap compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Plan, units};
use crate::measuring::compare::Amount;

/// Longest wait for live frames unless one is given.
const TIMEOUT: &str = "10";

/// Compare what a stamp costs on this machine: ktime, TAI, TSC
///
/// Repeats the experiment of Orosz & Skopkó (2013): what one read of each clock
/// costs by itself, on real frames between two checkpoints, and as a whole capture
/// program; how precise the stamps are on the paper's two patterns; the highest
/// rate without loss, and loss against frame size and gap. Every clock takes its
/// turn in every round.
///
/// Without -i it sends frames through a veth pair of its own, in namespaces that
/// are gone when it ends. With -i it measures on what an interface receives, in
/// native mode, and sends nothing: no precision and no loss then.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Measure on the frames that this interface receives
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// About 20 seconds, with a statement of what difference it can find
    #[arg(long, conflicts_with = "paper")]
    quick: bool,

    /// The paper's 20,000 frames of each pattern a round: hours (the estimate is
    /// printed first)
    #[arg(long)]
    paper: bool,

    /// CPU to receive and stamp on [default: the first one allowed; with -i frames
    /// that come in elsewhere are not measured]
    #[arg(long, value_name = "CPU", value_parser = units::cpu)]
    cpu: Option<u32>,

    /// With -i: longest wait for the frames of one turn
    #[arg(long, value_name = "TIME", default_value = TIMEOUT, value_parser = units::duration)]
    timeout: Duration,

    /// Measure the TSC even where it is not known to be constant
    #[arg(long)]
    force: bool,

    /// Measure ktime and the cheapest read of the TSC also with the CPU's interrupts
    /// turned off around the stamp, as Orosz & Skopkó did: what that costs, and whether
    /// the slowest stamps are faster (kernel 6.14)
    #[arg(long)]
    irqs_off: bool,

    /// Write everything as one JSON object on standard output
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
    /// Say it in JSON.
    pub json: bool,
    /// Page to write.
    pub report: Option<PathBuf>,
}

impl CompareArgs {
    pub(super) fn into_plan(self) -> Plan {
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
            json: self.json,
            report: self.report,
        })
    }
}
