//! `tscap stamp`.

use std::num::NonZeroU16;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::reference::ReferenceArgs;
use super::scope::ScopeArgs;
use super::stamp_clock::StampClock;
use super::{Plan, units};
use tscap_sources::reference::ReferencePlan;
use tscap_sources::stamping::{End, SendTimes, Stamping};

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
///
/// With --send-times it also writes send times into the test packets of STAMP (RFC 8762) and
/// TWAMP Light that programs of this host send, with an Error Estimate that is measured.
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

    #[command(flatten)]
    reference: ReferenceArgs,

    /// Write the send time and its Error Estimate into unauthenticated test packets of STAMP
    /// (RFC 8762) and TWAMP Light that this host sends from or to these UDP ports, at most 16
    ///
    /// Of a session-reflector that is T3, of a session-sender T1; for both name the reflector's
    /// port, mostly 862. Programs need no change. The time is that at which the packet is handed
    /// to the queueing discipline; the checksum is mended. Authenticated packets, fragments and
    /// what is forwarded are left alone and counted.
    #[arg(long, value_name = "PORTS")]
    send_times: Option<Ports>,

    /// Stop after this time: seconds, or with units (1m30s)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Write one JSON object a line to standard output: ready, progress every second, steps of
    /// the clock, summary
    #[arg(long)]
    json: bool,
}

/// UDP ports, separated by commas.
#[derive(Clone, Debug)]
struct Ports(SendTimes);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |part: &str| match part.parse::<NonZeroU16>() {
            Ok(port) => Ok((port.get(), End::Either)),
            Err(_) => Err(format!("{part:?} is no UDP port: 1 to 65535")),
        };
        let ports: Result<Vec<_>, _> = text.split(',').map(port).collect();
        let send_times = SendTimes::of(ports?).map_err(|error| error.to_string())?;
        Ok(Self(send_times))
    }
}

/// Receive times for others, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StampPlan {
    /// Where, and by which clock.
    pub stamping: Stamping,
    /// Whose time the times are; none for the host's.
    pub references: Vec<ReferencePlan>,
    /// Longest time to run.
    pub duration: Option<Duration>,
    /// Whether to say it in JSON.
    pub json: bool,
}

impl StampArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        let namespace = self.scope.target();
        let clock = self.reference.clock(self.clock.clock)?;
        let only = namespace.is_none().then_some(self.interface.as_str());
        let references = self.reference.plans(only)?;
        Ok(Plan::Stamp(StampPlan {
            stamping: Stamping {
                interface: self.interface,
                namespace,
                clock,
                tsc_path: self.clock.path,
                reference: None,
                send_times: self.send_times.map_or_else(SendTimes::default, |it| it.0),
            },
            references,
            duration: self.duration,
            json: self.json,
        }))
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
                reference: None,
                send_times: SendTimes::default(),
            },
            references: Vec::new(),
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

    #[test]
    fn ports_are_separated_by_commas() {
        let of = |ports: &str| plan(&["-i", "eth0", "--send-times", ports]);
        let Ok(Plan::Stamp(plan)) = of("862,50001") else {
            panic!("a plan of stamp");
        };
        let ports = [862, 50_001].map(|port| (port, End::Either));
        let expected = SendTimes::of(ports).unwrap();
        assert_eq!(plan.stamping.send_times, expected);
        let many = ["7"; 17].join(",");
        for (ports, reason) in [
            ("0", "no UDP port"),
            ("65536", "no UDP port"),
            ("862,", "no UDP port"),
            ("http", "no UDP port"),
            (many.as_str(), "at most 16 ports"),
        ] {
            let refused = of(ports).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
