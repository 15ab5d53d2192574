//! `tscap delay`.

mod files;
mod peers;

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgGroup, Args, CommandFactory as _, ValueEnum};

use super::filter::FilterArgs;
pub use files::HostFiles;
pub use peers::{PeerName, ReflectorPlan, SessionsPlan};

use super::output::OutputArgs;
use super::reference::ReferenceArgs;
use super::scope::ScopeArgs;
use super::{Cli, FilterSource, Plan, ResultOutput, Verbosity, units};
use tscap_capture::ClockChoice;
use tscap_delay::live::{LivePlan, MeasuredPath, OutPoint};
use tscap_delay::schema::Match;
use tscap_network::namespaces::Target;
use tscap_sources::reference::ReferencePlan;

/// Packets that are remembered at a time, by default.
const CAPACITY: usize = 1 << 20;

/// Measure how long packets take from one interface to another
///
/// Programs at both ends record a key of each packet, which stays as it is in between, and
/// its stamp, both by one clock. Each packet is matched, or has a named outcome; keys that
/// more than one packet has within the window are never guessed at. At the end: the delays
/// with their bound, the slowest packets, and what is known of the maximum.
///
/// --in A --out B is for a router, a bridge, NAT or a firewall; --reflect A for a server that
/// sends back what it gets (tscap gen --echo); --rtt A for the same from the client's side;
/// --mirror for copies of both ends on a port of their own.
///
/// Between two hosts: --serve IF on one of them, --to HOST on the other. Packets go there and back;
/// the delay each way has a bound that holds whatever the clocks of both are
/// (docs/two-hosts.md). --file A --file B tells the same of two captures, by the packets that both
/// have.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("delay", ""))]
#[command(group = ArgGroup::new("where").args(["entry", "reflect", "rtt", "to", "serve"]))]
pub struct DelayArgs {
    /// Interface where packets enter; of a file its name, or its number from 0 on
    #[arg(long = "in", value_name = "IF", requires = "exit")]
    entry: Option<String>,

    /// Interface where they leave
    #[arg(long = "out", value_name = "IF", requires = "entry")]
    exit: Option<String>,

    /// Also measure the other way
    #[arg(long, conflicts_with = "mirror")]
    both: bool,

    /// Interface where requests come in, and their replies go out
    #[arg(long, value_name = "IF")]
    reflect: Option<String>,

    /// Interface where requests go out, and their replies come in
    #[arg(long, value_name = "IF")]
    rtt: Option<String>,

    /// Mirror what --in receives and --out sends to interface TO by tc, and stamp the copies
    /// at FROM, the other end of its cable
    #[arg(long, value_name = "TO:FROM", requires = "exit", value_parser = pair)]
    mirror: Option<(String, String)>,

    /// Read a capture in the place of interfaces that work now: one that has both; twice for the
    /// captures of two hosts, --in is in the first one and --out in the second one
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "mirror", "load", "parallel", "namespace", "peer_netns", "pcapng", "count", "duration",
        "ring_size", "reference",
    ])]
    file: Vec<PathBuf>,

    #[command(flatten)]
    directions: files::DirectionArgs,

    /// Where packets are seen when they leave
    #[arg(long, value_enum, value_name = "POINT", default_value_t)]
    out_point: OutPoint,

    /// What makes two packets one
    #[arg(long = "match", value_enum, value_name = "BY", default_value_t)]
    matched_by: MatchChoice,

    /// Longest delay that is looked for: seconds, or with units (50ms). Packets are
    /// remembered for so long
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = units::duration)]
    window: Duration,

    /// Packets that are remembered at a time; more are counted as untracked
    #[arg(long, value_name = "NUMBER", default_value_t = CAPACITY,
          value_parser = units::within(1..=1_usize << 28))]
    max_packets: usize,

    /// Clock of the stamps; times of CLOCK_TAI can be set, and are no delays
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    clock: DelayClock,

    #[command(flatten)]
    reference: ReferenceArgs,

    /// Ring of each CPU (default: as for a capture)
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    ring_size: Option<usize>,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    peers: peers::PeerArgs,

    /// With --out-point peer: the other end is in this network namespace
    #[arg(long, value_name = "NAME|PATH|PID")]
    peer_netns: Option<String>,

    /// Stop after this time: seconds, or with units (1m30s)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Stop when so many packets are matched
    #[arg(short, long, value_name = "PACKETS", value_parser = units::positive::<u64>)]
    count: Option<u64>,

    /// Meanwhile load these CPUs as the paper on single-hop delay did: paper, or paper:0-1
    /// [default CPUs: all that tscap may use]
    #[arg(long, value_name = "paper[:CPUS]", value_parser = load)]
    load: Option<LoadChoice>,

    /// Meanwhile send frames of 192 bytes at this bit rate on another interface: 25Mbit:eth2
    #[arg(long, value_name = "RATE:IF", value_parser = parallel)]
    parallel: Option<ParallelChoice>,

    /// Also give the delays less the mean of this measurement, of a run without the device
    #[arg(long, value_name = "FILE.json")]
    correction: Option<PathBuf>,

    /// What this measurement is called beside others in tscap report
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Write the slowest packets, as they entered and as they left, to a pcapng file
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,

    /// Print all of the result: also the ten slowest packets, figures of
    /// RFC 8219, the whole machine, and the paper's figures beside
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    filter: FilterArgs,
}

/// What makes two packets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum MatchChoice {
    /// reply for --reflect and --rtt, bridge for ports of one bridge, else route
    #[default]
    Auto,
    /// Run, flow and sequence number of tscap gen
    Gen,
    /// The whole frame
    Bridge,
    /// The packet without what a router changes: addresses of the link layer, TTL or hop
    /// limit, and checksums
    Route,
    /// Protocol, IP id, length and payload: what neither a router nor NAT changes
    Nat,
    /// A request and the reply that echoes it
    Reply,
}

impl MatchChoice {
    /// `None` for what suits.
    fn by(self) -> Option<Match> {
        match self {
            Self::Auto => None,
            Self::Gen => Some(Match::Gen),
            Self::Bridge => Some(Match::Bridge),
            Self::Route => Some(Match::Route),
            Self::Nat => Some(Match::Nat),
            Self::Reply => Some(Match::Reply),
        }
    }
}

/// The clock of the stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum DelayClock {
    /// tsc by a kfunc, where there is one and nothing is seen at the tap, else ktime
    #[default]
    Auto,
    /// CLOCK_MONOTONIC, by bpf_ktime_get_ns
    Ktime,
    /// The CPU's time-stamp counter; at the tap by a perf event (kernel 6.16)
    Tsc,
}

impl DelayClock {
    fn choice(self) -> ClockChoice {
        match self {
            Self::Auto => ClockChoice::Auto,
            Self::Ktime => ClockChoice::Ktime,
            Self::Tsc => ClockChoice::Tsc,
        }
    }
}

/// The CPUs to load; `None` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadChoice {
    /// They.
    pub cpus: Option<Vec<u32>>,
}

/// Traffic beside what is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParallelChoice {
    /// Bits a second.
    pub bits: u64,
    /// The interface that it is sent on.
    pub interface: String,
}

/// A measurement of delays, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayPlan {
    /// The interfaces, live or in the file; its filter is yet to be compiled.
    pub live: LivePlan,
    /// The capture to read.
    pub file: Option<PathBuf>,
    /// The captures of two hosts.
    pub hosts: Option<HostFiles>,
    /// Sessions with other hosts, in the place of interfaces of this one.
    pub sessions: Option<SessionsPlan>,
    /// Measure only the packets that match.
    pub filter: Option<FilterSource>,
    /// Whose time the times are; none for the host's.
    pub references: Vec<ReferencePlan>,
    /// Longest time to measure.
    pub duration: Option<Duration>,
    /// CPUs to load.
    pub load: Option<LoadChoice>,
    /// Traffic to send.
    pub parallel: Option<ParallelChoice>,
    /// A measurement without the device.
    pub correction: Option<PathBuf>,
    /// What it is called.
    pub label: Option<String>,
    /// Where the slowest packets go.
    pub pcapng: Option<PathBuf>,
    /// How it is told.
    pub output: ResultOutput,
    /// How much to say.
    pub verbosity: Verbosity,
}

impl DelayArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        if let Some(interface) = self.peers.serve.clone() {
            return self.into_reflector(interface);
        }
        let align = self.peers.align();
        let places = [self.entry.clone(), self.exit.clone()];
        let hosts = files::Given {
            files: &self.file,
            places: &places,
            is_both: self.both,
            directions: self.directions,
            align,
            window: self.window,
            capacity: self.max_packets,
        };
        let has_place = self.reflect.is_some() || self.rtt.is_some() || !self.peers.to.is_empty();
        let hosts = hosts.hosts(has_place, self.matched_by.by());
        let hosts = hosts.map_err(|(kind, what)| Cli::command().error(kind, what))?;
        let is_of_hosts = self.file.len() > 1;
        let course = match (self.entry, self.exit, self.reflect, self.rtt) {
            (entry, exit, ..) if is_of_hosts => MeasuredPath::Through {
                entry: entry.unwrap_or_default(),
                exit: exit.unwrap_or_default(),
                is_both: self.both,
            },
            (Some(entry), Some(exit), ..) => match self.mirror {
                Some((to, from)) => MeasuredPath::Mirrored {
                    entry,
                    exit,
                    to,
                    from,
                },
                None => MeasuredPath::Through {
                    entry,
                    exit,
                    is_both: self.both,
                },
            },
            (_, _, Some(interface), _) => MeasuredPath::Reflected(interface),
            (_, _, _, Some(interface)) => MeasuredPath::RoundTrip(interface),
            // Which interface it is follows from the way to the peer.
            _ => MeasuredPath::RoundTrip(String::new()),
        };
        let namespace = self.scope.target();
        // The host's daemon has an interface in this process's own namespace.
        let asks_through = match &course {
            MeasuredPath::Reflected(interface) | MeasuredPath::RoundTrip(interface) => {
                Some(interface.as_str())
            }
            MeasuredPath::Through { .. } | MeasuredPath::Mirrored { .. } => None,
        };
        let clock = self.reference.clock(self.clock.choice())?;
        let asks_through = asks_through.filter(|_| namespace.is_none());
        let references = self.reference.plans(asks_through)?;
        let sessions = (!self.peers.to.is_empty()).then(|| self.peers.sessions());
        let sessions = sessions.transpose().map_err(|what| conflict(&what))?;
        if self.window.is_zero() {
            return Err(conflict("--window must be longer than 0"));
        }
        let filter = self.filter.into_source();
        if sessions.is_some() && filter.is_some() {
            return Err(conflict(
                "a session has no filter: its packets are those that are sent",
            ));
        }
        if !self.file.is_empty() && filter.is_some() {
            return Err(conflict(
                "a file is filtered before: tscap convert FILE -w OUT.pcapng EXPRESSION",
            ));
        }
        if !self.file.is_empty() && self.out_point == OutPoint::Peer {
            return Err(conflict(
                "a capture has what an interface sends and receives: name the other end with --out",
            ));
        }
        let matched_by = self.matched_by.by();
        let live = LivePlan {
            course,
            namespace,
            peer_namespace: self.peer_netns.map(Target::Netns),
            out_point: self.out_point,
            matched_by,
            window: self.window,
            capacity: self.max_packets,
            clock,
            reference: None,
            filter: None,
            ring_bytes: self.ring_size,
            keeps_packets: self.pcapng.is_some(),
            count: self.count,
        };
        Ok(Plan::Delay(Box::new(DelayPlan {
            live,
            file: self.file.into_iter().next(),
            hosts,
            sessions,
            filter,
            references,
            duration: self.duration,
            load: self.load,
            parallel: self.parallel,
            correction: self.correction,
            label: self.label,
            pcapng: self.pcapng,
            verbosity: self.output.verbosity(),
            output: self.output.output(self.verbose),
        })))
    }

    fn into_reflector(self, interface: String) -> Result<Plan, clap::Error> {
        if self.count.is_some()
            || self.output.report.is_some()
            || self.filter.into_source().is_some()
        {
            return Err(conflict(
                "a reflector takes no --count, --report or filter: it answers until it is told to \
                 stop",
            ));
        }
        let clock = self.reference.clock(self.clock.choice())?;
        let ends = (self.duration, self.output.json);
        let namespace = self.scope.target();
        let asks_through = namespace.is_none().then_some(interface.as_str());
        let references = self.reference.plans(asks_through)?;
        let clock = (clock, references);
        let plan = self.peers.reflector(interface, namespace, clock, ends);
        Ok(Plan::Reflect(Box::new(plan)))
    }
}

fn conflict(what: &str) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((to, from)) if !to.is_empty() && !from.is_empty() => Ok((to.into(), from.into())),
        _ => Err("such as m0:m1, the two ends of a cable".into()),
    }
}

fn load(text: &str) -> Result<LoadChoice, String> {
    let (profile, cpus) = match text.split_once(':') {
        Some((profile, cpus)) => (profile, Some(units::cpus(cpus)?.0)),
        None => (text, None),
    };
    match profile {
        "paper" => Ok(LoadChoice { cpus }),
        _ => Err("the one load is `paper`, or on some CPUs paper:0-1".into()),
    }
}

fn parallel(text: &str) -> Result<ParallelChoice, String> {
    let what = "such as 25Mbit:eth2";
    let (rate, interface) = text.split_once(':').ok_or(what)?;
    match units::line_rate(rate) {
        Ok(rate) if !interface.is_empty() => Ok(ParallelChoice {
            bits: rate.0,
            interface: interface.into(),
        }),
        Ok(_) => Err(what.into()),
        Err(error) => Err(format!("{error}; {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<DelayPlan, String> {
        let words = ["tscap", "delay"]
            .into_iter()
            .chain(line.split_whitespace());
        match Cli::plan(words.map(Into::into)) {
            Ok(Plan::Delay(plan)) => Ok(*plan),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn where_to_measure_is_one_of_four() {
        let course = |line: &str| plan(line).map(|plan| plan.live.course);
        let (a, b) = ("a".to_owned(), "b".to_owned());
        let through = |is_both| MeasuredPath::Through {
            entry: a.clone(),
            exit: b.clone(),
            is_both,
        };
        assert_eq!(course("--in a --out b").unwrap(), through(false));
        assert_eq!(course("--in a --out b --both").unwrap(), through(true));
        assert_eq!(
            course("--reflect a").unwrap(),
            MeasuredPath::Reflected(a.clone())
        );
        assert_eq!(
            course("--rtt a").unwrap(),
            MeasuredPath::RoundTrip(a.clone())
        );
        let mirrored = course("--in a --out b --mirror m0:m1").unwrap();
        assert!(
            matches!(mirrored, MeasuredPath::Mirrored { to, from, .. } if to == "m0" && from == "m1")
        );
        for refused in [
            "",
            "--in a",
            "--out b",
            "--in a --out b --rtt c",
            "--reflect a --both",
            "--in a --out b --mirror m0",
            "--in a --out b --both --mirror m0:m1",
            "--in a --out b --window 0",
            "--in a --out b --file f --load paper",
            "--in a --out b --file f --both",
            "--in a --out b --file f udp",
            "--in a --out b --file f --out-point peer",
        ] {
            assert!(course(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn loads_and_traffic_are_read() {
        let with = |more: &str| plan(&format!("--reflect a {more}"));
        let load = with("--load paper:0-1").unwrap().load.unwrap();
        assert_eq!(load.cpus, Some(vec![0, 1]));
        assert_eq!(with("--load paper").unwrap().load.unwrap().cpus, None);
        assert!(with("--load idle").unwrap_err().contains("`paper`"));
        let parallel = with("--parallel 25Mbit:eth2").unwrap().parallel.unwrap();
        assert_eq!(
            (parallel.bits, parallel.interface.as_str()),
            (25_000_000, "eth2")
        );
        for refused in ["25Mbit", "25Mbit:", "fast:eth2"] {
            assert!(with(&format!("--parallel {refused}")).is_err(), "{refused}");
        }
        let plan = with("-c 5 --window 50ms udp port 9").unwrap();
        assert_eq!(plan.live.window, Duration::from_millis(50));
        assert_eq!(plan.live.count, Some(5));
        assert_eq!(
            plan.filter,
            Some(FilterSource::Expression("udp port 9".into()))
        );
    }
}
