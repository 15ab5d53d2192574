//! `tscap doctor`.

use clap::Args;

use super::Plan;

/// Examine whether this machine is fit for precise stamps
///
/// Examines the machine, and with -i an interface: counter, clock, kernel, stamp
/// sources (each is loaded, none is attached), privileges, driver, queues and their
/// interrupts, offloads, power, virtualisation. Nothing is changed without --fix --yes.
///
/// Each line is good, a warning (a capture works, but its stamps could be better, or
/// not everything could be examined) or bad (a capture would be refused). It says why
/// that matters and what to do: a command for root (fix), or words where no command
/// does it (advice). Bad lines come first; -v lists good ones as well. Any user may run
/// it; what only root can see is a warning for the others.
#[derive(Debug, Args)]
#[command(
    after_long_help = super::examples::before("doctor", "With --json: {\"event\": \"doctor\", \"v\": 1, \"machine\": {kernel, cpu, \
                       virtualisation}, \"interface\": null or {name, ifindex, driver}, \"good\", \
                       \"warnings\", \"bad\": how many, \"checks\": [{id, verdict: \"good\", \
                       \"warning\" or \"bad\", found, why, and fix or advice unless it is \
                       good}]}. With --fix: {\"event\": \"doctor_fix\", \"v\": 1, \"interface\", \
                       \"changes\": [{check, setting, path, now, then, became: \"planned\", \
                       \"done\" or \"refused\", error}], \"left\": [{check, fix or advice, \
                       reason}], \"undo\"}\n\nExit codes: 0 nothing is bad, or with --fix no change \
                       was refused; 1 otherwise, or a failure; 2 wrong arguments")
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

    /// Print what is to be changed of the interface, in place of the report
    ///
    /// tscap changes offloads, receive packet steering, threaded NAPI, deferred interrupts and
    /// interrupt affinities of this interface. It leaves to you, and lists, what `tscap
    /// restore` could not give back, such as settings of the whole machine.
    #[arg(long, requires = "interface")]
    fix: bool,

    /// With --fix: make the changes. They last until the next boot or `tscap restore`
    #[arg(long, requires = "fix")]
    yes: bool,
}

/// What to do of what is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixChoice {
    /// Tell it.
    Tell,
    /// Do it.
    Do,
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
    /// Tell or do what is advised, in place of the report.
    pub fix: Option<FixChoice>,
}

impl DoctorArgs {
    pub(super) fn into_plan(self) -> Plan {
        Plan::Doctor(DoctorPlan {
            interface: self.interface,
            verbose: self.verbose,
            json: self.json,
            fix: self.fix.then_some(if self.yes {
                FixChoice::Do
            } else {
                FixChoice::Tell
            }),
        })
    }
}
