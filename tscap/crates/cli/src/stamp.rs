//! `tscap stamp`.

use std::time::Duration;

use clap::Args;

use super::scope::ScopeArgs;
use super::stamp_clock::StampClock;
use super::{Plan, units};
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

    #[command(flatten)]
    scope: ScopeArgs,

    /// Clock to stamp frames with
    #[arg(long, value_enum, default_value_t, value_name = "CLOCK")]
    clock: StampClock,

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
    pub(super) fn into_plan(self) -> Plan {
        Plan::Stamp(StampPlan {
            stamping: Stamping {
                interface: self.interface,
                namespace: self.scope.target(),
                clock: self.clock.clock,
                tsc_path: self.clock.path,
            },
            duration: self.duration,
            json: self.json,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use tscap_capture::ClockChoice;
    use tscap_clock::TscPath;

    fn plan(words: &[&str]) -> Result<Plan, clap::Error> {
        let all = ["tscap", "stamp"].iter().chain(words);
        Cli::plan(all.map(Into::into))
    }

    #[test]
    fn the_arguments_are_the_plan() {
        let words = ["-i", "eth0", "--clock", "tsc:perf", "--duration", "2"];
        let expected = StampPlan {
            stamping: Stamping {
                interface: "eth0".into(),
                namespace: None,
                clock: ClockChoice::Tsc,
                tsc_path: Some(TscPath::Perf),
            },
            duration: Some(Duration::from_secs(2)),
            json: false,
        };
        assert_eq!(plan(&words).unwrap(), Plan::Stamp(expected));
    }

    #[test]
    fn the_way_to_the_tsc_is_a_part_of_the_clock() {
        let refused = plan(&["-i", "eth0", "--clock", "tsc", "--tsc-path", "perf"]);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("--clock tsc:PATH"), "{refused}");
        assert!(plan(&[]).is_err(), "there is no interface of choice");
    }
}
