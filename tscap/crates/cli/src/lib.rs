//! Arguments: parsed and checked into plain plans. Nothing here touches the
//! system.

mod capture;
mod clock;
mod compare;
mod convert;
mod counters;
mod delay;
mod doctor;
pub mod examples;
mod explain;
mod extcap;
mod filter;
mod foreign;
mod generate;
mod headings;
mod loss;
mod merge;
mod output;
mod qos;
mod reference;
mod report;
mod rotation;
mod scope;
mod stamp;
mod stamp_clock;
mod units;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub use capture::{CaptureArgs, CapturePlan, Verbosity, no_file};
pub use clock::{ClockArgs, ClockPlan, ReadClockPlan, Stamp};
pub use compare::{CompareArgs, ComparePlan, ObserverPlan};
pub use convert::{ConvertArgs, ConvertPlan};
pub use counters::{CountersArgs, CountersPlan};
pub use delay::{
    DelayArgs, DelayPlan, HostFiles, LoadChoice, ParallelChoice, PeerName, ReflectorPlan,
    SessionsPlan,
};
pub use doctor::{DoctorArgs, DoctorPlan, FixChoice};
pub use extcap::{ExtcapPlan, config as extcap_config, value_of as extcap_value};
pub use filter::{FilterForm, FilterSource};
pub use generate::{EchoPlan, GenArgs, GenPlan, SenderChoice};
pub use headings::GROUPS;
pub use loss::{Load, LossArgs, LossPlan, PredictionPlan, PredictionScope, ReceiveCpu};
pub use merge::{MergeArgs, MergePlan};
pub use output::ResultOutput;
pub use qos::{AskedInterfaces, LayersPlan, QosArgs, QosPlan, QosSource};
pub use report::{ReportArgs, ReportPlan};
pub use stamp::{StampArgs, StampPlan};

use tscap_flows::layers::live::switch;
use tscap_live::membership::PrivilegedTask;
use tscap_live::settings::keeper;
use tscap_network::namespaces::Target;

/// What the user asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// Print what was asked of an option.
    Explain(String),
    /// List the interfaces of these network namespaces, or of this process's own.
    ListInterfaces(Vec<Target>),
    /// Capture.
    Capture(Box<CapturePlan>),
    /// Print a compiled filter.
    ShowFilter {
        /// The filter.
        filter: FilterSource,
        /// How.
        form: FilterForm,
    },
    /// Watch the clock.
    Clock(ClockPlan),
    /// `clock --read`.
    ReadClock(ReadClockPlan),
    /// Examine the machine.
    Doctor(DoctorPlan),
    /// Answer Wireshark, which runs what is in its extcap folder.
    Extcap(Box<ExtcapPlan>),
    /// Compare what stamps cost.
    Compare(ComparePlan),
    /// Measure what captures do to traffic that passes.
    Observer(ObserverPlan),
    /// Stamp a capture again.
    Convert(ConvertPlan),
    /// Measure what counters are like.
    Counters(CountersPlan),
    /// Measure delays between two interfaces, or to another host.
    Delay(Box<DelayPlan>),
    /// Answer the test packets of another host.
    Reflect(Box<ReflectorPlan>),
    /// Send test frames.
    Generate(Box<GenPlan>),
    /// Answer test frames.
    Echo(EchoPlan),
    /// Find out where frames are lost.
    Loss(Box<LossPlan>),
    /// Predict whether a load will fit.
    Prediction(Box<PredictionPlan>),
    /// Join captures by time.
    Merge(MergePlan),
    /// Tell the quality of flows.
    Qos(Box<QosPlan>),
    /// Tell how long packets are between layers.
    Layers(Box<LayersPlan>),
    /// Draw a comparison or a sweep again.
    Report(ReportPlan),
    /// Give other programs receive times.
    Stamp(StampPlan),
    /// Give back what killed captures left changed.
    Restore,
    /// Keep the journal of a capture that has given up its privileges.
    KeepSettings,
    /// Switch statistics of programs for a measurement that has given up its privileges.
    SwitchStatistics,
}

impl Plan {
    /// Whether it is that of a process which another command of tscap has started.
    pub fn is_of_helper(&self) -> bool {
        matches!(self, Self::KeepSettings | Self::SwitchStatistics)
    }

    /// What it asks for that is not for everybody who may capture.
    pub fn acts(&self) -> Vec<PrivilegedTask> {
        match self {
            Self::Capture(plan) => plan.acts(),
            Self::Generate(plan) if plan.is_beyond_tests => vec![PrivilegedTask::Send],
            // A reflector's programs stamp what the whole interface receives.
            Self::Stamp(_) | Self::Reflect(_) => vec![PrivilegedTask::Stamp],
            _ => Vec::new(),
        }
    }

    /// Whether it reads files, computes and writes files or prints, and nothing else.
    pub fn is_of_files(&self) -> bool {
        match self {
            Self::ShowFilter { .. } | Self::Convert(_) | Self::Merge(_) | Self::Report(_) => true,
            Self::Delay(plan) => plan.file.is_some(),
            Self::Qos(plan) => matches!(plan.source, QosSource::File(_)),
            _ => false,
        }
    }
}

const USAGE: &str = "tscap -i <NAME> [OPTIONS] [EXPRESSION]...\n       tscap <COMMAND> [OPTIONS]";
const EXIT_CODES: &str = "Exit codes: 0 success, also after Ctrl-C; 1 a failure; 2 wrong arguments; \
     3 the account does not add up (a bug); 130 aborted: by a second Ctrl-C at least 0.5 s after \
     the first, if the output hangs; convert, merge and report also by the first Ctrl-C";

/// Packet capture whose every timestamp can be trusted
#[derive(Debug, Parser)]
#[command(
    name = "tscap",
    version,
    max_term_width = 100,
    override_usage = USAGE,
    after_long_help = examples::before("tscap", EXIT_CODES)
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,

    // Behind the commands, whose help it arranges.
    #[command(flatten)]
    _arranged: headings::Headings,
}

#[derive(Debug, Subcommand)]
enum Command {
    Capture(Box<CaptureArgs>),
    Clock(ClockArgs),
    Doctor(DoctorArgs),
    Compare(CompareArgs),
    Convert(ConvertArgs),
    Counters(CountersArgs),
    Delay(Box<DelayArgs>),
    Gen(Box<GenArgs>),
    Loss(Box<LossArgs>),
    Merge(MergeArgs),
    Qos(Box<QosArgs>),
    Report(ReportArgs),
    Stamp(StampArgs),
    /// Restore the settings that a killed capture or doctor --fix had changed
    ///
    /// A capture with --rx-cpu or --offloads off changes interrupt affinities,
    /// receive packet steering, poll threads or offloads. It restores them when
    /// it ends, or the process does that it has started for this (tscap-keeper).
    /// If both are killed (kill -9), its journal says what was changed: this command
    /// restores the old values. Journals are in /run/tscap for root, and in a folder
    /// of the user's for others (/run/user/UID/tscap, or /tmp/tscap-UID). What tscap
    /// doctor --fix --yes has changed is restored in the same way. A setting
    /// that somebody else has changed since is left alone. So is a setting that
    /// a running capture has changed.
    #[command(after_long_help = examples::before("restore", ""))]
    Restore,
}

impl Cli {
    /// The plan that a command line asks for, the program's name first. One that begins
    /// with an option is one of `tscap capture`, as for tcpdump and dumpcap.
    ///
    /// # Errors
    /// What is wrong with the arguments; also the help or the version where that is
    /// asked for.
    pub fn plan(words: impl Iterator<Item = OsString>) -> Result<Plan, clap::Error> {
        let mut words: Vec<_> = words.collect();
        // For nobody but other commands of tscap.
        if let Some([word]) = words.get(1..) {
            match word.to_str() {
                Some(keeper::COMMAND) => return Ok(Plan::KeepSettings),
                Some(switch::COMMAND) => return Ok(Plan::SwitchStatistics),
                _ => {}
            }
        }
        let is_own = |word: &str| ["-h", "--help", "-V", "--version"].contains(&word);
        let first = words.get(1).and_then(|word| word.to_str());
        if first.is_some_and(extcap::is_asked) {
            return extcap::plan(&words);
        }
        if let Some(answer) = explain::asked(&words) {
            return answer;
        }
        if first.is_some_and(|word| word.starts_with('-') && !is_own(word)) {
            words.insert(1, "capture".into());
        }
        let parsed = Self::try_parse_from(words).map_err(explain::with_advice);
        parsed?.into_plan()
    }

    /// The plan, or what is wrong with the arguments.
    pub fn into_plan(self) -> Result<Plan, clap::Error> {
        match self.command {
            Command::Capture(args) => args.into_plan(),
            Command::Clock(args) => args.into_plan(),
            Command::Doctor(args) => Ok(args.into_plan()),
            Command::Compare(args) => Ok(args.into_plan()),
            Command::Convert(args) => args.into_plan(),
            Command::Counters(args) => args.into_plan(),
            Command::Delay(args) => args.into_plan(),
            Command::Gen(args) => args.into_plan(),
            Command::Loss(args) => args.into_plan(),
            Command::Merge(args) => args.into_plan(),
            Command::Qos(args) => args.into_plan(),
            Command::Report(args) => args.into_plan(),
            Command::Stamp(args) => args.into_plan(),
            Command::Restore => Ok(Plan::Restore),
        }
    }
}

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
