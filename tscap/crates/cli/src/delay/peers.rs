//! `tscap delay --serve` and `tscap delay --to`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ipnet::IpNet;

use super::super::units;
use tscap_capture::ClockChoice;
use tscap_network::namespaces::Target;
use tscap_sources::reference::ReferencePlan;
use tscap_two_hosts::AlignBy;
use tscap_two_hosts::sender::Pacing;

/// The port of a reflector, by default (RFC 8762).
const PORT: u16 = tscap_protocol::PORT;

/// What is measured on this host alone.
const HERE: [&str; 3] = ["entry", "reflect", "rtt"];
/// Who is no reflector.
const SENDERS: [&str; 4] = ["entry", "reflect", "rtt", "to"];
/// Who is no sender.
const REFLECTORS: [&str; 4] = ["entry", "reflect", "rtt", "serve"];
/// Who aligns no clocks.
const UNALIGNED: [&str; 3] = ["reflect", "rtt", "serve"];
/// What a measurement between two hosts has no use for.
const BETWEEN: [&str; 9] = [
    "mirror",
    "both",
    "file",
    "load",
    "parallel",
    "pcapng",
    "correction",
    "peer_netns",
    "max_packets",
];

/// Between two hosts.
#[derive(Debug, Args)]
pub(super) struct PeerArgs {
    /// Send test packets to a session-reflector (RFC 8762, also TWAMP-light) on another host, and
    /// measure the delay there and back; more than once for several
    #[arg(long, value_name = "HOST[:PORT]", value_parser = peer, conflicts_with_all = BETWEEN)]
    pub to: Vec<PeerName>,

    /// Be a session-reflector at this interface: answer the test packets of tscap delay --to and
    /// of others
    #[arg(long, value_name = "IF", conflicts_with_all = BETWEEN)]
    pub serve: Option<String>,

    /// Port of the reflector
    #[arg(long, value_name = "PORT", default_value_t = PORT, conflicts_with_all = SENDERS,
          value_parser = units::within(1..=u16::MAX))]
    port: u16,

    /// Answer at this address of the interface only
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with_all = SENDERS)]
    address: Option<IpAddr>,

    /// Answer these sources only; more than once for several [default: private and link-local
    /// addresses]
    #[arg(long, value_name = "PREFIX", conflicts_with_all = SENDERS, value_parser = prefix)]
    allow: Vec<IpNet>,

    /// Packets a second that are answered, of each source; of all together ten times as many
    #[arg(long, value_name = "NUMBER", default_value = "10k", conflicts_with_all = SENDERS,
          value_parser = rate_of)]
    max_rate: u64,

    /// Sessions that are remembered; of others nothing is answered
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, conflicts_with_all = SENDERS,
          value_parser = units::within(1..=1_usize << 20))]
    max_sessions: usize,

    /// Keep nothing of sessions: replies have the sequence number of their request, and loss has
    /// no direction
    #[arg(long, conflicts_with_all = SENDERS)]
    stateless: bool,

    /// Also answer requests of 14 octets, by 44
    #[arg(long, conflicts_with_all = SENDERS)]
    twamp_light: bool,

    /// Session identifier of what is sent [default: by chance]; with --serve of what is answered,
    /// more than once for several [default: all]
    #[arg(long, value_name = "1-65535", conflicts_with_all = HERE, value_parser = units::within(1..=u16::MAX))]
    ssid: Vec<u16>,

    /// Authenticate packets by the key in this file, 32 to 128 hexadecimal digits, which only its
    /// owner may read
    #[arg(long, value_name = "FILE", conflicts_with_all = HERE)]
    key_file: Option<PathBuf>,

    /// Packets a second of each session
    #[arg(long, value_name = "NUMBER", default_value = "100", conflicts_with = "poisson",
          conflicts_with_all = REFLECTORS,
          value_parser = rate_of)]
    rate: u64,

    /// Send by a Poisson process with this mean gap
    #[arg(long, value_name = "TIME", value_parser = units::duration,
          conflicts_with_all = REFLECTORS)]
    poisson: Option<Duration>,

    /// Octets of a test packet, without the headers of IP and UDP [default: 64, or with a key
    /// 152]
    #[arg(long, value_name = "OCTETS", conflicts_with_all = REFLECTORS, value_parser = units::within(44..=8_900_u32))]
    size: Option<u32>,

    /// Differentiated services code point of test packets: a number, or a name (ef, af41, cs5)
    #[arg(long, value_name = "DSCP", conflicts_with_all = REFLECTORS, default_value = "0", value_parser = dscp)]
    dscp: u8,

    /// What aligns the clocks of both hosts [default: both; of two captures of one host nothing]
    #[arg(long, value_enum, value_name = "BY", conflicts_with_all = UNALIGNED)]
    align: Option<AlignChoice>,

    /// Greatest difference of the rates of both clocks, ppm: all bounds of the alignment assume it
    /// [default: 100, or 600 if one of them is synchronised, and so may be slewed]
    #[arg(long, value_name = "PPM", conflicts_with_all = UNALIGNED, value_parser = units::drift)]
    max_drift: Option<f64>,

    /// The least delays there and back differ by no more than this: the bound of the alignment
    /// by exchanges is half of it then, if that is less
    #[arg(long, value_name = "TIME", value_parser = units::duration,
          conflicts_with_all = UNALIGNED)]
    max_asymmetry: Option<Duration>,
}

/// What aligns the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AlignChoice {
    /// What exchanges and UTC both allow
    Both,
    /// The packets themselves, there and back: to half of a round trip
    Exchange,
    /// What both hosts' clocks say of their error against UTC
    Utc,
}

/// A reflector, as somebody names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerName {
    /// A name of the DNS, or an address.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
}

/// A session-reflector, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorPlan {
    /// The interface.
    pub interface: String,
    /// The network namespace that it is in; `None` for this process's own.
    pub namespace: Option<Target>,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// Whose time the times are; none for the host's.
    pub references: Vec<ReferencePlan>,
    /// Its port.
    pub port: u16,
    /// The address that it answers at; `None` for all of the interface.
    pub address: Option<IpAddr>,
    /// Sources that are answered; none for private ones.
    pub allowed: Vec<IpNet>,
    /// Packets a second of each source.
    pub max_rate: u64,
    /// Sessions that are remembered.
    pub max_sessions: usize,
    /// It keeps nothing of sessions.
    pub is_stateless: bool,
    /// Requests of 14 octets are answered.
    pub takes_twamp_light: bool,
    /// Session identifiers that are answered; none for all.
    pub ssids: Vec<u16>,
    /// Where the key is.
    pub key_file: Option<PathBuf>,
    /// Longest time to run.
    pub duration: Option<Duration>,
    /// Whether to say it in JSON.
    pub json: bool,
}

/// Sessions with reflectors, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionsPlan {
    /// The reflectors.
    pub peers: Vec<PeerName>,
    /// When packets are sent.
    pub pacing: Pacing,
    /// Octets of a packet; `None` for what suits.
    pub size: Option<u32>,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Session identifier; `None` for one by chance.
    pub ssid: Option<u16>,
    /// Where the key is.
    pub key_file: Option<PathBuf>,
    /// What aligns the clocks.
    pub align: AlignBy,
    /// Greatest difference of the clocks' rates, parts per billion, if it was given.
    pub max_drift_ppb: Option<u64>,
    /// Greatest difference of the least delays there and back, ns, if somebody vouches for one.
    pub max_asymmetry_ns: Option<u64>,
}

/// What aligns the clocks of two hosts, as far as it was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlignArgs {
    pub by: Option<AlignBy>,
    pub max_drift_ppb: Option<u64>,
    pub max_asymmetry_ns: Option<u64>,
}

impl AlignArgs {
    /// Whether any of it was given.
    pub fn is_given(&self) -> bool {
        self.by.is_some() || self.max_drift_ppb.is_some() || self.max_asymmetry_ns.is_some()
    }
}

impl PeerArgs {
    /// What aligns the clocks.
    pub fn align(&self) -> AlignArgs {
        AlignArgs {
            by: self.align.map(|it| match it {
                AlignChoice::Both => AlignBy::Both,
                AlignChoice::Exchange => AlignBy::Exchange,
                AlignChoice::Utc => AlignBy::Utc,
            }),
            max_drift_ppb: self.max_drift.map(|ppm| (ppm * 1e3).ceil() as u64),
            max_asymmetry_ns: self.max_asymmetry.map(ns),
        }
    }

    /// The reflector that is asked for.
    pub fn reflector(
        self,
        interface: String,
        namespace: Option<Target>,
        (clock, references): (ClockChoice, Vec<ReferencePlan>),
        (duration, json): (Option<Duration>, bool),
    ) -> ReflectorPlan {
        ReflectorPlan {
            interface,
            namespace,
            clock,
            references,
            port: self.port,
            address: self.address,
            allowed: self.allow,
            max_rate: self.max_rate,
            max_sessions: self.max_sessions,
            is_stateless: self.stateless,
            takes_twamp_light: self.twamp_light,
            ssids: self.ssid,
            key_file: self.key_file,
            duration,
            json,
        }
    }

    /// The sessions that are asked for.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn sessions(self) -> Result<SessionsPlan, String> {
        if self.ssid.len() > 1 {
            return Err("--to takes one --ssid".into());
        }
        if self.poisson.is_some_and(|it| it.is_zero()) {
            return Err("--poisson must be more than 0".into());
        }
        let align = self.align();
        Ok(SessionsPlan {
            peers: self.to,
            pacing: match self.poisson {
                Some(mean) => Pacing::Poisson(ns(mean)),
                None => Pacing::Every(1_000_000_000 / self.rate.min(1_000_000_000)),
            },
            size: self.size,
            dscp: self.dscp,
            ssid: self.ssid.first().copied(),
            key_file: self.key_file,
            align: align.by.unwrap_or_default(),
            max_drift_ppb: align.max_drift_ppb,
            max_asymmetry_ns: align.max_asymmetry_ns,
        })
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A number of packets a second: 100, 10k, 0.5M.
fn rate_of(text: &str) -> Result<u64, String> {
    let rate = units::rate(text)?;
    let period = (!rate.is_bits).then(|| rate.period(1)).flatten();
    let rate = period
        .map(|it| it.rate().round() as u64)
        .filter(|it| *it > 0);
    rate.ok_or_else(|| "packets a second: 1 or more, such as 100 or 10k".into())
}

/// HOST, HOST:PORT, an address of IPv6 alone, or [ADDRESS]:PORT.
fn peer(text: &str) -> Result<PeerName, String> {
    const LIKE: &str = "such as 192.0.2.7, host.example:8620 or [2001:db8::7]:862";
    let port = |text: &str| text.parse().ok().filter(|it| *it > 0).ok_or(LIKE);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, PORT),
            Some((host, rest)) => (host, port(rest.strip_prefix(':').ok_or(LIKE)?)?),
            None => return Err(LIKE.into()),
        },
        None if text.parse::<std::net::Ipv6Addr>().is_ok() => (text, PORT),
        None => match text.rsplit_once(':') {
            Some((host, number)) => (host, port(number)?),
            None => (text, PORT),
        },
    };
    if host.is_empty() {
        return Err(LIKE.into());
    }
    Ok(PeerName {
        host: host.to_owned(),
        port,
    })
}

fn address(text: &str) -> Result<IpAddr, String> {
    let address = text.parse();
    address.map_err(|_| "an address of this host, such as 192.0.2.7 or 2001:db8::7".into())
}

/// A prefix, or an address.
fn prefix(text: &str) -> Result<IpNet, String> {
    let prefix = text
        .parse()
        .or_else(|_| text.parse().map(|it: IpAddr| it.into()));
    prefix.map_err(|_| "such as 192.0.2.0/24, 2001:db8::/32 or 192.0.2.7".into())
}

/// A code point by number or name (RFC 2474, RFC 2597, RFC 3246).
fn dscp(text: &str) -> Result<u8, String> {
    let named = || {
        let text = text.to_ascii_lowercase();
        let digits: Vec<_> = text
            .bytes()
            .skip(2)
            .map(|it| it.wrapping_sub(b'0'))
            .collect();
        match (text.get(..2)?, &digits[..]) {
            ("ef", []) => Some(46),
            ("be", []) => Some(0),
            ("cs", [class @ 0..=7]) => Some(class * 8),
            ("af", [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
            _ => None,
        }
    };
    let number = text.parse().ok().filter(|it| *it < 64);
    number
        .or_else(named)
        .ok_or_else(|| "0 to 63, ef, af11 to af43, or cs0 to cs7".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, Plan};

    fn plan(line: &str) -> Result<Plan, clap::Error> {
        let words = format!("tscap delay {line}");
        Cli::plan(words.split(' ').map(Into::into))
    }

    #[test]
    fn peers_are_named_in_each_way() {
        let of = |host: &str, port| PeerName {
            host: host.into(),
            port,
        };
        assert_eq!(peer("a.example"), Ok(of("a.example", 862)));
        assert_eq!(peer("a.example:9"), Ok(of("a.example", 9)));
        assert_eq!(peer("192.0.2.7"), Ok(of("192.0.2.7", 862)));
        assert_eq!(peer("2001:db8::7"), Ok(of("2001:db8::7", 862)));
        assert_eq!(peer("[2001:db8::7]"), Ok(of("2001:db8::7", 862)));
        assert_eq!(peer("[2001:db8::7]:9"), Ok(of("2001:db8::7", 9)));
        for wrong in ["", ":9", "a:", "a:0", "a:65536", "[::1", "[::1]9", "[]:9"] {
            assert!(peer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn code_points_have_names() {
        for (text, value) in [("0", 0), ("46", 46), ("ef", 46), ("CS5", 40), ("af41", 34)] {
            assert_eq!(dscp(text), Ok(value), "{text}");
        }
        for wrong in ["64", "-1", "af40", "af51", "cs8", "xx", "e", ""] {
            assert!(dscp(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reflector_is_a_plan() {
        let line =
            "--serve eth0 --port 8620 --allow 192.0.2.0/24 --allow 10.0.0.1 --ssid 5 --ssid 6";
        let Ok(Plan::Reflect(plan)) = plan(line) else {
            panic!("{line}");
        };
        assert_eq!((plan.interface.as_str(), plan.port), ("eth0", 8_620));
        assert_eq!(plan.allowed.len(), 2);
        assert_eq!(plan.ssids, [5, 6]);
        assert_eq!((plan.max_rate, plan.is_stateless), (10_000, false));
        // Its programs change what other programs receive.
        let acts = Plan::Reflect(plan).acts();
        assert_eq!(acts, [tscap_live::membership::PrivilegedTask::Stamp]);
    }

    #[test]
    fn sessions_are_a_plan() {
        let line = "--to a --to b:9 --rate 50 --dscp ef --max-drift 20 --max-asymmetry 1ms -c 10";
        let Ok(Plan::Delay(plan)) = plan(line) else {
            panic!("{line}");
        };
        let sessions = plan.sessions.unwrap();
        assert_eq!(sessions.peers.len(), 2);
        assert_eq!(sessions.pacing, Pacing::Every(20_000_000));
        assert_eq!((sessions.dscp, sessions.max_drift_ppb), (46, Some(20_000)));
        assert_eq!(sessions.max_asymmetry_ns, Some(1_000_000));
        assert_eq!(plan.live.count, Some(10));
    }

    #[test]
    fn what_belongs_to_the_other_end_is_refused() {
        for wrong in [
            "--to a --serve eth0",
            "--to a --in eth0 --out eth1",
            "--port 9 --to a",
            "--to a --rate 5 --poisson 1ms",
            "--to a --rate 0",
            "--to a --ssid 1 --ssid 2",
            "--to a --mirror x:y",
            "--to a udp",
        ] {
            assert!(plan(wrong).is_err(), "{wrong}");
        }
    }
}
