//! `tscap clock`.

mod shared;

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::reference::{NoInterface, ReferenceChoice, plan_of, reference};
use super::{Cli, Plan, units};
pub use shared::{ReadClockPlan, Stamp};
use tscap_clock_reader::DEFAULT_PATH;
use tscap_sources::reference::ReferencePlan;

/// Watch the clock that converts TSC stamps
///
/// Reads this host's clocks and its TSC a hundred times a second, as a capture does,
/// and shows the feed-forward clock that follows from them. Changes nothing and needs
/// no privilege, but for NTP packets, which programs at the interface stamp. A terminal
/// that is too narrow gets fewer columns; --json has all.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("clock", ""))]
pub struct ClockArgs {
    /// Time between two lines: seconds, or with units (500ms); at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Share the clock with programs, which read it from memory: in the file PATH [default:
    /// /run/tscap_clock/clock]. No table is printed
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = DEFAULT_PATH)]
    #[arg(conflicts_with = "audit_server")]
    serve: Option<PathBuf>,

    /// Read the clock that `tscap clock --serve` shares, once; again every --interval for as long
    /// as --duration says
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = DEFAULT_PATH)]
    #[arg(conflicts_with_all = ["serve", "reference", "interface", "audit_server", "log", "report"])]
    read: Option<PathBuf>,

    /// With --read: the times of a stamp from the last minute. A whole number is one of the
    /// counter, seconds with a decimal point or an RFC 3339 time one of CLOCK_REALTIME
    #[arg(
        long,
        value_name = "RAW|TIME",
        requires = "read",
        conflicts_with = "duration"
    )]
    #[arg(value_parser = shared::stamp)]
    at: Option<Stamp>,

    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Also compare the clock with a PTP hardware clock, such as /dev/ptp0; with an NTP
    /// server, which is asked (ntp:HOST or ntp:HOST:PORT); or with those that this host's
    /// own daemon asks through -i (ntp:passive), where nothing is sent
    ///
    /// A server is asked every 16 s, or as ntp:HOST,poll=8s says; every 8 s at most if it is not
    /// on this machine.
    #[arg(long, value_name = "DEVICE|ntp:HOST[,poll=TIME]|ntp:passive", value_parser = reference)]
    reference: Option<ReferenceChoice>,

    /// The interface at which NTP packets pass [default of ntp:HOST: that of the route]
    #[arg(short, long, value_name = "IF")]
    interface: Option<String>,

    /// Compare the stamps of an NTP server on this host with those of its packets at -i:
    /// what the host adds before the server's stamps and behind them
    #[arg(long, requires = "interface", conflicts_with_all = ["reference", "log", "report"])]
    audit_server: bool,

    /// Print JSON objects, one a line, instead of the table
    #[arg(long)]
    json: bool,

    /// Write the clock's history to this file, about 1.2 MB an hour: `tscap convert
    /// --clock-log` stamps captures of this boot again by it. A log of the same boot
    /// is continued
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// At the end, write a page for a browser: offset, skew and Allan deviation from
    /// 0.1 s on; with --log, of the whole log
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

const SHORTEST: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = units::duration(text)?;
    if interval < SHORTEST {
        return Err("the shortest is 100ms".into());
    }
    Ok(interval)
}

/// What to watch, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockPlan {
    /// Between two lines.
    pub interval: Duration,
    /// Longest time to watch.
    pub duration: Option<Duration>,
    /// What it is compared with.
    pub reference: Option<ReferencePlan>,
    /// The interface of a server whose stamps are looked at, in the place of the clock.
    pub audited: Option<String>,
    /// Where it is shared with programs.
    pub serve: Option<PathBuf>,
    /// Whether to say it in JSON.
    pub json: bool,
    /// Where the history is kept.
    pub log: Option<PathBuf>,
    /// Where the page goes.
    pub report: Option<PathBuf>,
}

impl ClockArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        if let Some(path) = self.read {
            return Ok(Plan::ReadClock(ReadClockPlan {
                path,
                at: self.at,
                interval: self.interval,
                duration: self.duration,
                json: self.json,
            }));
        }
        let sees_packets = self.audit_server
            || matches!(
                self.reference,
                Some(ReferenceChoice::Server { .. } | ReferenceChoice::Passive)
            );
        if self.interface.is_some() && !sees_packets {
            return Err(unfit(
                "-i goes with --reference ntp:HOST, --reference ntp:passive or --audit-server",
            ));
        }
        let reference = self
            .reference
            .map(|it| plan_of(it, self.interface.as_deref()));
        let reference = reference.transpose().map_err(|NoInterface| {
            unfit(
                "--reference ntp:passive needs -i: the interface through which the host's daemon \
                 asks its servers",
            )
        })?;
        Ok(Plan::Clock(ClockPlan {
            interval: self.interval,
            duration: self.duration,
            reference,
            audited: self.interface.filter(|_| self.audit_server),
            serve: self.serve,
            json: self.json,
            log: self.log,
            report: self.report,
        }))
    }
}

fn unfit(what: &str) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told() {
        let reported = |words: &str| {
            let words = words.split(' ').map(Into::into);
            Cli::plan(words)
                .map(drop)
                .map_err(|error| error.to_string())
        };
        for (words, why) in [
            ("tscap clock --reference ntp:passive", "needs -i"),
            (
                "tscap clock --reference /dev/ptp0,poll=16",
                "poll goes with ntp:HOST",
            ),
            (
                "tscap clock --reference ntp:passive,poll=16 -i a",
                "poll goes with ntp:HOST",
            ),
            (
                "tscap clock --reference ntp:a,pool=16",
                "only poll=TIME may follow",
            ),
            (
                "tscap clock --reference ntp:a --poll 16",
                "--reference ntp:HOST,poll=TIME",
            ),
            ("tscap clock -i eth0", "-i goes with"),
            (
                "tscap clock --reference ntp:a,poll=1025",
                "the longest is 1024 s",
            ),
            ("tscap clock --audit-server", "--interface"),
            (
                "tscap clock --audit-server -i a --reference ntp:b",
                "cannot be used with",
            ),
            ("tscap clock --at 5", "--read"),
            ("tscap clock --read --at x", "a whole number"),
            ("tscap clock --read --serve", "cannot be used with"),
            ("tscap clock --read --log a", "cannot be used with"),
            (
                "tscap clock --read --reference ntp:a",
                "cannot be used with",
            ),
            (
                "tscap clock --serve --audit-server -i a",
                "cannot be used with",
            ),
        ] {
            let error = reported(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
        for words in [
            "tscap clock --reference ntp:passive -i eth0",
            "tscap clock --reference ntp:a:1,poll=8 -i eth0",
            "tscap clock --audit-server -i eth0",
            "tscap clock --serve --log a --reference ntp:b",
            "tscap clock --read --at 5",
            "tscap clock --read /tmp/clock --duration 5 --json",
        ] {
            assert_eq!(reported(words), Ok(()), "{words}");
        }
    }
}
