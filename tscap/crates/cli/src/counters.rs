//! `tscap counters`.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::{Cli, Plan, ResultOutput, units};
use tscap_lab::counters::Stress;

/// A phase, unless something else is asked for.
const PHASE: &str = "5";
/// Shortest phase, in which every counter is looked at.
const SHORTEST: Duration = Duration::from_millis(200);
/// Longest phase: the paper's were 90 minutes.
const LONGEST: Duration = Duration::from_hours(24);

/// Measure what the counters of this machine are like: the TSC, HPET, ACPI, the kernel's clocks
///
/// Repeats sections IV and V of the paper on RADclock: frequency, width and wrap of each counter;
/// what a reading takes, in cycles of the TSC, in user space, by system calls and by BPF programs;
/// what the kernel's interface adds; and how each keeps its rate, idle and under loads.
///
/// The clock source is never changed. Counters that are not there, or not for this user, are named
/// with the reason: anybody may read the TSC and CLOCK_MONOTONIC_RAW, the others take root. How
/// well a counter keeps its rate is only said with a --reference that has an oscillator of its own.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("counters", ""))]
pub struct CountersArgs {
    /// Also measure under these loads, between idle phases: cpu, a loop on every CPU, twice; net,
    /// a capture at full rate on a veth pair in namespaces of its own
    #[arg(long, value_enum, value_name = "LOADS", value_delimiter = ',')]
    stress: Vec<Stress>,

    /// Time of each phase: seconds, or with units; the paper's is 90m
    #[arg(long, value_name = "TIME", default_value = PHASE, value_parser = phase)]
    cycle: Duration,

    /// Time of all phases together, instead of --cycle
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "cycle")]
    duration: Option<Duration>,

    /// PTP hardware clock that rates are measured by, such as /dev/ptp0
    #[arg(long, value_name = "DEVICE")]
    reference: Option<PathBuf>,

    /// CPU to read on [default: the first one allowed]
    #[arg(long, value_name = "CPU", value_parser = units::cpu)]
    cpu: Option<u32>,

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

fn phase(text: &str) -> Result<Duration, String> {
    let phase = units::duration(text)?;
    match phase {
        _ if phase < SHORTEST => Err("the shortest is 200ms".into()),
        _ if phase > LONGEST => Err("the longest is 24h".into()),
        _ => Ok(phase),
    }
}

/// What to measure, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountersPlan {
    /// What the machine does meanwhile, in order of time.
    pub phases: Vec<Stress>,
    /// How long each of them is.
    pub phase: Duration,
    /// Device that rates are by.
    pub reference: Option<PathBuf>,
    /// CPU to read on.
    pub cpu: Option<u32>,
    /// How it is told.
    pub output: ResultOutput,
}

impl CountersArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        let phases = Stress::cycle(&self.stress);
        let phase = match self.duration {
            None => self.cycle,
            Some(all) => all / phases.len() as u32,
        };
        if !(SHORTEST..=LONGEST).contains(&phase) {
            let (count, phase) = (phases.len(), humantime::format_duration(phase));
            return Err(Cli::command().error(
                ErrorKind::ValueValidation,
                format!(
                    "--duration is for {count} phases, {phase} each: a phase takes 200ms to 24h"
                ),
            ));
        }
        Ok(Plan::Counters(CountersPlan {
            phases,
            phase,
            reference: self.reference,
            cpu: self.cpu,
            output: ResultOutput {
                json: self.json,
                verbose: self.verbose,
                report: self.report,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn plan(words: &str) -> Result<CountersPlan, String> {
        let words = ["tscap", "counters"]
            .into_iter()
            .chain(words.split_whitespace());
        let plan = Cli::try_parse_from(words).and_then(Cli::into_plan);
        match plan.map_err(|error| error.to_string())? {
            Plan::Counters(plan) => Ok(plan),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_short_and_idle() {
        let plan = plan("").unwrap();
        assert_eq!(plan.phases, [Stress::Idle]);
        assert_eq!(plan.phase, Duration::from_secs(5));
        assert_eq!(
            (plan.reference, plan.output.report, plan.output.json),
            (None, None, false)
        );
    }

    #[test]
    fn loads_stand_between_idle_phases() {
        let paper = plan("--stress net,cpu --cycle 90m --reference /dev/ptp0").unwrap();
        assert_eq!(paper.phases.len(), 7);
        assert_eq!(paper.phase, Duration::from_secs(90 * 60));
        assert_eq!(paper.reference, Some("/dev/ptp0".into()));
        let short = plan("--stress cpu --duration 10").unwrap();
        assert_eq!(
            (short.phases.len(), short.phase),
            (5, Duration::from_secs(2))
        );
    }

    #[test]
    fn what_can_not_be_is_refused() {
        for (words, why) in [
            ("--cycle 100ms", "the shortest is 200ms"),
            ("--cycle 25h", "the longest is 24h"),
            (
                "--stress cpu,net --duration 1",
                "--duration is for 7 phases, 142ms",
            ),
            ("--cycle 1 --duration 1", "cannot be used with"),
            ("--stress idle", "invalid value 'idle'"),
            ("--stress disk", "invalid value 'disk'"),
        ] {
            let refused = plan(words).unwrap_err();
            assert!(refused.contains(why), "{words}: {refused}");
        }
    }
}
