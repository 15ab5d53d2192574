//! `tscap convert`.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::filter::{FilterArgs, FilterSource};
use super::{Cli, Plan, units};
use tscap_clock::TimeBase;

/// Stamp a capture again, or keep only the packets that match a filter
///
/// Without an expression: for captures made with --keep-raw. A fit over the whole
/// history of the clock in the file turns each raw stamp into wall-clock time, from both
/// sides; the capture itself could only look back. Times change by some tens of
/// nanoseconds.
///
/// With an expression: the copy has the packets that match, as by tcpdump -r, of any
/// pcapng of Ethernet frames. Their times stay, unless --clock-log or --time-base is
/// given too. tscap's statistics count the others as filtered.
///
/// Everything else is copied byte for byte.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("convert", ""))]
pub struct ConvertArgs {
    /// A capture made with --keep-raw; with an expression, any pcapng
    #[arg(value_name = "IN.pcapng")]
    input: PathBuf,

    /// File to write, or - for standard output; the summary then goes to standard
    /// error
    #[arg(short, long = "write", value_name = "OUT.pcapng")]
    write: PathBuf,

    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,

    /// Use the log of `tscap clock --log`, of the same boot, instead of the capture's
    /// own history: one log serves many captures. Packets of times that the log does
    /// not cover stay as they are. Refused if these are more than half of the
    /// capture's time
    #[arg(long, value_name = "LOG")]
    clock_log: Option<PathBuf>,

    /// Clock of the times in the copy [default: that of the capture, realtime]; the
    /// copy's interface descriptions name it. Other programs take every time for UTC:
    /// tai shows some 37 s ahead, monotonic just after 1970. Needs no raw stamps if the
    /// clock was not set during the capture. Unless --clock-log is given too, nothing
    /// is stamped again, and converting back gives the same file
    ///
    /// ntp is UTC by the NTP server of which --clock-log has exchanges (`tscap clock
    /// --reference ntp:HOST --log`), whatever the host's clock showed; ntp:ADDRESS names the
    /// server where the log has several. For captures made with --clock tsc --keep-raw.
    #[arg(long, value_name = "CLOCK", value_parser = time_base)]
    time_base: Option<BaseChoice>,

    /// Table of leap seconds for --time-base tai, used where no time daemon gave the
    /// kernel its TAI offset; the copy says so [default: that of tzdata,
    /// /usr/share/zoneinfo/leap-seconds.list]
    #[arg(long, value_name = "FILE", requires = "time_base")]
    leap_seconds: Option<PathBuf>,

    /// Give the packets the times of the clock of another host, which captured B.pcapng meanwhile: by
    /// the packets that both captures have, there and back (docs/two-hosts.md). The copy's
    /// interface descriptions have the host and the bound
    #[arg(long, value_name = "B.pcapng",
          conflicts_with_all = ["clock_log", "time_base", "expression"])]
    with: Option<PathBuf>,

    /// With --with: greatest difference of the rates of both clocks, ppm [default: 100, or 600 if one
    /// of them is synchronised, and so may be slewed]
    #[arg(long, value_name = "PPM", requires = "with", value_parser = units::drift)]
    max_drift: Option<f64>,

    #[command(flatten)]
    filter: FilterArgs,
}

/// A clock of the times, and of several servers the one that it is.
#[derive(Clone, Debug)]
struct BaseChoice {
    base: TimeBase,
    server: Option<String>,
}

fn time_base(text: &str) -> Result<BaseChoice, String> {
    let (name, server) = match text.split_once(':') {
        Some(("ntp", server)) if !server.is_empty() => ("ntp", Some(server.to_owned())),
        _ => (text, None),
    };
    let all = [
        TimeBase::Realtime,
        TimeBase::Tai,
        TimeBase::Monotonic,
        TimeBase::Ntp,
    ];
    let found = all.into_iter().find(|base| base.name() == name);
    let base = found.ok_or("give realtime, tai, monotonic, ntp or ntp:ADDRESS")?;
    Ok(BaseChoice { base, server })
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
    /// The capture of another host, whose clock the times are to be of.
    pub with: Option<PathBuf>,
    /// Greatest difference of the rates of both clocks, parts per billion, if it was given.
    pub max_drift_ppb: Option<u64>,
    /// For an NTP server's: its address, where the log has several.
    pub server: Option<String>,
    /// The table of leap seconds, if not tzdata's.
    pub leap_seconds: Option<PathBuf>,
    /// Which packets the copy is to have, if not all.
    pub filter: Option<FilterSource>,
}

impl ConvertArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        let (base, server) = match self.time_base {
            Some(BaseChoice { base, server }) => (Some(base), server),
            None => (None, None),
        };
        if base == Some(TimeBase::Ntp) && self.clock_log.is_none() {
            return Err(Cli::command().error(
                ErrorKind::MissingRequiredArgument,
                "--time-base ntp needs --clock-log: a log of `tscap clock --reference ntp:HOST`",
            ));
        }
        Ok(Plan::Convert(ConvertPlan {
            input: self.input,
            output: self.write,
            json: self.json,
            clock_log: self.clock_log,
            time_base: base,
            with: self.with,
            max_drift_ppb: self.max_drift.map(|ppm| (ppm * 1e3).ceil() as u64),
            server,
            leap_seconds: self.leap_seconds,
            filter: self.filter.into_source(),
        }))
    }
}
