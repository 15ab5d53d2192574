//! `tscap convert`.

use std::path::PathBuf;

use clap::Args;

use super::Plan;
use crate::capturing::clock::TimeBase;

/// Stamp a capture again, by all that is known of its clock at its end
///
/// For captures made with --keep-raw: each raw stamp is turned into wall-clock time
/// by a fit over the whole history of the clock that the file carries, from both
/// sides, where the capture itself could only look back. Times change, by some tens
/// of nanoseconds; packets and everything else are copied byte for byte.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// A capture made with --keep-raw
    #[arg(value_name = "IN.pcapng")]
    input: PathBuf,

    /// Where the copy goes, - being standard output: the summary then goes to
    /// standard error
    #[arg(short, long = "write", value_name = "OUT.pcapng")]
    write: PathBuf,

    /// Say what was done as one JSON object
    #[arg(long)]
    json: bool,

    /// Go by what `tscap clock --log` kept in this file, of the same boot, rather
    /// than by the capture's own history: one such process serves many captures.
    /// Packets from when nothing was logged are left as they are; refused if that is
    /// more than half of the capture's time
    #[arg(long, value_name = "LOG")]
    clock_log: Option<PathBuf>,

    /// Times of this clock in the copy, which says so in its interface descriptions;
    /// by default of that of the capture, realtime. Other programs take any for UTC:
    /// tai shows some 37 s ahead, monotonic just after 1970. Needs no raw stamps if
    /// the clock was not set meanwhile. Unless --clock-log is given too, nothing is
    /// stamped again, and converting back gives the same file
    #[arg(long, value_name = "CLOCK", value_parser = time_base)]
    time_base: Option<TimeBase>,

    /// For --time-base tai where no time daemon gave the kernel its offset: the table
    /// of leap seconds to take it from. The copy says so. By default that of tzdata,
    /// /usr/share/zoneinfo/leap-seconds.list
    #[arg(long, value_name = "FILE", requires = "time_base")]
    leap_seconds: Option<PathBuf>,
}

fn time_base(text: &str) -> Result<TimeBase, String> {
    let all = [TimeBase::Realtime, TimeBase::Tai, TimeBase::Monotonic];
    let found = all.into_iter().find(|base| base.name() == text);
    found.ok_or_else(|| "give realtime, tai or monotonic".into())
}

/// What to convert, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertPlan {
    /// The capture.
    pub input: PathBuf,
    /// The copy; - is standard output.
    pub output: PathBuf,
    /// Whether to say so in JSON.
    pub json: bool,
    /// A log of the clock to go by.
    pub clock_log: Option<PathBuf>,
    /// Which clock the copy's times are to be of, if not that of the capture's.
    pub time_base: Option<TimeBase>,
    /// The table of leap seconds, if not tzdata's.
    pub leap_seconds: Option<PathBuf>,
}

impl ConvertArgs {
    pub(super) fn into_plan(self) -> Plan {
        Plan::Convert(ConvertPlan {
            input: self.input,
            output: self.write,
            json: self.json,
            clock_log: self.clock_log,
            time_base: self.time_base,
            leap_seconds: self.leap_seconds,
        })
    }
}
