//! `tscap doctor`.

use clap::Args;

use super::Plan;

/// Examine whether this machine is fit for precise stamps
///
/// Examines the machine, and with -i an interface: counter, clock, kernel, stamp
/// sources (each is loaded, none is attached), privileges, driver, queues and their
/// interrupts, offloads, power, virtualisation. Nothing is changed.
///
/// Each line is good, a warning (a capture works, but its stamps could be better, or
/// not everything could be examined) or bad (a capture would be refused). It says why
/// that matters and what to do: a command for root (fix), or words where no command
/// does it (advice). Bad lines come first; -v lists good ones as well. Any user may run
/// it; what only root can see is a warning for the others.
#[derive(Debug, Args)]
#[command(
    after_long_help = "With --json: {\"event\": \"doctor\", \"v\": 1, \"machine\": {kernel, cpu, \
                       virtualisation}, \"interface\": null or {name, ifindex, driver}, \"good\", \
                       \"warnings\", \"bad\": how many, \"checks\": [{id, verdict: \"good\", \
                       \"warning\" or \"bad\", found, why, and fix or advice unless it is \
                       good}]}\n\nExit codes: 0 nothing is bad; 1 something is, or a failure; \
                       2 wrong arguments"
)]
pub struct DoctorArgs {
    /// Interface to examine as well
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// List what is good as well
    #[arg(short, long)]
    verbose: bool,

    /// Write one JSON object to standard output
    #[arg(long)]
    json: bool,
}

/// An examination, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorPlan {
    /// The interface to examine.
    pub interface: Option<String>,
    /// List good checks as well.
    pub verbose: bool,
    /// Say it in JSON.
    pub json: bool,
}

impl DoctorArgs {
    pub(super) fn into_plan(self) -> Plan {
        Plan::Doctor(DoctorPlan {
            interface: self.interface,
            verbose: self.verbose,
            json: self.json,
        })
    }
}
