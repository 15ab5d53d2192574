//! `tscap stamp`.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::{Cli, Plan, units};
use tscap_capture::ClockChoice;
use tscap_clock::TscPath;
use tscap_sources::stamping::Stamping;

/// Give other programs tscap's receive times
///
/// While it runs, sockets that ask for the time at which a packet was received (SO_TIMESTAMP,
/// SO_TIMESTAMPNS, SO_TIMESTAMPING by software: chronyd, ping) get the stamp of a program
/// in the driver of the interface in the place of the kernel's own, which is later. They need no
/// change and no privilege. Packet sockets (tcpdump) keep the kernel's stamp.
///
/// Where tscap has nothing better the kernel's stamp stays: for TCP, packets with a time to be
/// sent, a driver without room for XDP metadata, and 1 s after tscap stamp was stopped or hangs.
/// Each is counted. Nothing stays behind when tscap stamp ends, however it ends. Takes native
/// XDP and tcx (Linux 6.6), and runs beside tscap capture, which has to be started later.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("stamp", ""))]
pub struct StampArgs {
    /// Interface by name, or by its number in tscap -D
    #[arg(short, long, value_name = "INTERFACE")]
    interface: String,

    /// Clock to stamp frames with
    #[arg(long, value_enum, default_value_t, value_name = "CLOCK")]
    clock: ClockChoice,

    /// With --clock tsc: use this path only [default: the first of these that works]
    #[arg(long, value_enum, value_name = "PATH")]
    tsc_path: Option<TscPath>,

    /// Stop after this time: seconds, or with units (1m30s)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Write one JSON object a line to standard output: ready, progress every second, steps of
    /// the clock, summary
    #[arg(long)]
    json: bool,
}

/// Receive times for others, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StampPlan {
    /// Where, and by which clock.
    pub stamping: Stamping,
    /// Longest time to run.
    pub duration: Option<Duration>,
    /// Whether to say it in JSON.
    pub json: bool,
}

impl StampArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        if self.tsc_path.is_some() && self.clock != ClockChoice::Tsc {
            let message = "--tsc-path is for --clock tsc";
            return Err(Cli::command().error(ErrorKind::ArgumentConflict, message));
        }
        Ok(Plan::Stamp(StampPlan {
            stamping: Stamping {
                interface: self.interface,
                clock: self.clock,
                tsc_path: self.tsc_path,
            },
            duration: self.duration,
            json: self.json,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &[&str]) -> Result<Plan, clap::Error> {
        let all = ["tscap", "stamp"].iter().chain(words);
        Cli::plan(all.map(Into::into))
    }

    #[test]
    fn the_arguments_are_the_plan() {
        let words = [
            "-i",
            "eth0",
            "--clock",
            "tsc",
            "--tsc-path",
            "perf",
            "--duration",
            "2",
        ];
        let expected = StampPlan {
            stamping: Stamping {
                interface: "eth0".into(),
                clock: ClockChoice::Tsc,
                tsc_path: Some(TscPath::Perf),
            },
            duration: Some(Duration::from_secs(2)),
            json: false,
        };
        assert_eq!(plan(&words).unwrap(), Plan::Stamp(expected));
    }

    #[test]
    fn a_path_without_its_clock_is_refused() {
        let refused = plan(&["-i", "eth0", "--tsc-path", "perf"]).unwrap_err();
        assert!(refused.to_string().contains("--clock tsc"), "{refused}");
        assert!(plan(&[]).is_err(), "there is no interface of choice");
    }
}
