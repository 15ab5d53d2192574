//! `tscap qos`.

mod layers;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, ValueEnum};

use super::output::OutputArgs;
use super::reference::ReferenceArgs;
use super::scope::ScopeArgs;
use super::{Cli, FilterSource, Plan, ResultOutput, Verbosity, units};
use tscap_capture::{ClockChoice, DirectionChoice};
use tscap_flows::schema::{FlowBy, SortOrder};
use tscap_flows::{ClockRates, FlowOptions, VoiceOptions};
use tscap_network::namespaces::Target;
use tscap_programs::hook::Layer;
use tscap_sources::reference::ReferencePlan;
use tscap_statistics::Codec;

pub use layers::LayersPlan;

/// Flows at a time, by default.
const MAX_FLOWS: usize = 16_384;

/// Tell rate, delay, jitter, loss and order of each flow
///
/// For each flow: packets, bytes and rate; the time from packet to packet; by sequence
/// numbers of RTP and of tscap gen loss and its periods (RFC 3357, 7680), copies, and
/// reordering with its extent (RFC 4737); jitter (RFC 3550); of tscap gen, whose packets
/// say when they were sent, one-way delay (RFC 7679) and its variation (RFC 3393, 5481); of
/// TCP the bytes that are seen again, and the round trip by acknowledgements and timestamps;
/// of QUIC the round trip by the spin bit; of voice R and MOS (ITU-T G.107). Each figure has its number of values, and the bound of
/// its error where the stamps have one. Every packet has an outcome.
///
/// With -i what interfaces receive and send is stamped as in a capture, until Ctrl-C, -c or
/// --duration; each second the flows that come first are told. FILE is a pcapng file of any
/// program: what it can't give is named. Raw stamps are used where it has them (tscap capture
/// --keep-raw).
///
/// With --layers, each received packet is stamped at each of these layers of the network stack,
/// and found again by its content: how long it was between them is told by flow, and where
/// packets ended, beside what each layer's own program costs. A layer that this kernel does not
/// have is left out and named.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("qos", ""))]
pub struct QosArgs {
    /// The capture, unless -i or -r is given; then a filter of pcap-filter(7), such as
    /// udp and host 10.0.0.1
    #[arg(value_name = "FILE|EXPRESSION")]
    words: Vec<String>,

    /// Interface where packets are stamped now; may be given several times
    #[arg(short, long, value_name = "IF")]
    interface: Vec<String>,

    /// The capture
    #[arg(short, long, value_name = "FILE", conflicts_with_all = LIVE)]
    read: Option<PathBuf>,

    /// What a flow is
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    flow: FlowBy,

    /// Look inside VXLAN and GRE: the inner packet is the one that counts
    #[arg(long)]
    inner: bool,

    /// Flows at a time; to make room for more, the longest idle one is ended. The default of
    /// 16,384 takes up to 128 MiB, with --flow rtp 103 MiB, with --flow gen 241 MiB; streams in a file
    /// may take more
    #[arg(long, value_name = "NUMBER", default_value_t = MAX_FLOWS,
          value_parser = units::within(1..=1_usize << 24))]
    max_flows: usize,

    /// Clock rate of RTP's payload types that have no fixed one, Hz; of one type: 96:48000
    #[arg(long, value_name = "[TYPE:]HZ", value_parser = rtp_clock)]
    rtp_clock: Vec<RtpClock>,

    /// Codec of all flows, for R and MOS: g711-plc (G.711 with packet loss concealment), g711,
    /// g729a, g7231 or gsm-efr. Without it, payload types 0, 4, 8 and 18 of RTP tell it, with
    /// concealment for G.711
    #[arg(long, value_name = "CODEC", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(Codec::ALL.map(Codec::id)).map(codec))]
    voice_codec: Option<Codec>,

    /// One-way delay of the path to where packets are stamped, for R and MOS of flows whose delay
    /// is not measured (default: not counted)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    voice_delay: Option<Duration>,

    /// What comes first
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    sort: SortOrder,

    /// Show so many flows
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = units::within(1..=10_000_usize))]
    top: usize,

    /// Which packets of an interface: those that it receives (in), sends (out), or both
    #[arg(
        short = 'Q',
        long,
        value_enum,
        value_name = "DIRECTION",
        default_value_t,
        hide_possible_values = true,
        requires = "interface"
    )]
    direction: DirectionChoice,

    /// Clock of the stamps
    #[arg(
        long,
        value_enum,
        value_name = "CLOCK",
        default_value_t,
        requires = "interface"
    )]
    clock: QosClock,

    #[command(flatten)]
    reference: ReferenceArgs,

    /// Tell how long received packets are between these layers of the network stack instead,
    /// such as xdp,tcx,pre,local-in,cgroup,app
    #[arg(
        long,
        value_enum,
        value_name = "LAYERS",
        value_delimiter = ',',
        requires = "interface",
        conflicts_with_all = ["direction", "clock", "reference", "count", "rtp_clock", "sort", "voice_codec", "voice_delay"]
    )]
    layers: Vec<Layer>,

    /// With --layers: the control group whose sockets count, a folder of a hierarchy of version
    /// 2 (default: its root)
    #[arg(long, value_name = "PATH", requires = "layers")]
    cgroup: Option<PathBuf>,

    #[command(flatten)]
    scope: ScopeArgs,

    /// Ring of each CPU (default: as for a capture)
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, requires = "interface")]
    ring_size: Option<usize>,

    /// Stop after this time: seconds, or with units (1m30s)
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "interface")]
    duration: Option<Duration>,

    /// Stop when so many packets were seen
    #[arg(short, long, value_name = "PACKETS", value_parser = units::positive::<u64>,
          requires = "interface")]
    count: Option<u64>,

    /// Print all of the result: also the figures of each flow, and the whole
    /// machine
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// What is asked of interfaces only.
const LIVE: [&str; 10] = [
    "interface",
    "layers",
    "cgroup",
    "direction",
    "clock",
    "reference",
    "namespace",
    "ring_size",
    "duration",
    "count",
];

/// The clock of the stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum QosClock {
    /// tsc by a kfunc, where there is one, else ktime
    #[default]
    Auto,
    /// CLOCK_MONOTONIC, by bpf_ktime_get_ns
    Ktime,
    /// The CPU's time-stamp counter
    Tsc,
}

/// A clock rate, of one payload type or of all that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RtpClock {
    payload_type: Option<u8>,
    rate: u32,
}

/// What flows to tell of, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QosPlan {
    /// Where the packets come from.
    pub source: QosSource,
    /// What flows are.
    pub options: FlowOptions,
    /// What comes first.
    pub sort: SortOrder,
    /// So many are shown.
    pub top: usize,
    /// Only the packets that match.
    pub filter: Option<FilterSource>,
    /// How it is told.
    pub output: ResultOutput,
    /// How much to say.
    pub verbosity: Verbosity,
}

/// Where packets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QosSource {
    /// A capture.
    File(PathBuf),
    /// Interfaces.
    Interfaces(AskedInterfaces),
}

/// What is asked of interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedInterfaces {
    /// They.
    pub interfaces: Vec<String>,
    /// The network namespace that they are in.
    pub namespace: Option<Target>,
    /// Which packets.
    pub direction: DirectionChoice,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// Whose time the times are; none for the host's.
    pub references: Vec<ReferencePlan>,
    /// Ring of each CPU, bytes.
    pub ring_bytes: Option<usize>,
    /// Longest time to measure.
    pub duration: Option<Duration>,
    /// Most packets to see.
    pub count: Option<u64>,
}

impl QosArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        if !self.layers.is_empty() {
            return self.into_layers();
        }
        let verbosity = self.output.verbosity();
        let mut words = self.words.into_iter();
        let namespace = self.scope.target();
        if namespace.is_some() && self.interface.is_empty() {
            let what = "--netns, --container and --pod are of interfaces: give -i INTERFACE";
            return Err(Cli::command().error(ErrorKind::MissingRequiredArgument, what));
        }
        if self.reference.is_given() && self.interface.is_empty() {
            let what = "--reference is for stamps that are taken now: give -i INTERFACE";
            return Err(Cli::command().error(ErrorKind::MissingRequiredArgument, what));
        }
        let clock = self.reference.clock(match self.clock {
            QosClock::Auto => ClockChoice::Auto,
            QosClock::Ktime => ClockChoice::Ktime,
            QosClock::Tsc => ClockChoice::Tsc,
        })?;
        let only = match &self.interface[..] {
            [only] if namespace.is_none() => Some(only.as_str()),
            _ => None,
        };
        let references = self.reference.plans(only)?;
        let source = match self.read {
            Some(file) => QosSource::File(file),
            None if !self.interface.is_empty() => QosSource::Interfaces(AskedInterfaces {
                interfaces: self.interface,
                namespace,
                direction: self.direction,
                clock,
                references,
                ring_bytes: self.ring_size,
                duration: self.duration,
                count: self.count,
            }),
            None => QosSource::File(words.next().map(PathBuf::from).ok_or_else(|| {
                let what = "give a capture, or an interface: tscap qos FILE, tscap qos -i eth0";
                Cli::command().error(ErrorKind::MissingRequiredArgument, what)
            })?),
        };
        let words: Vec<_> = words.collect();
        let mut rates = ClockRates::default();
        // Rates of one type first: the others are for those that have none then.
        let mut clocks = self.rtp_clock;
        clocks.sort_by_key(|it| it.payload_type.is_none());
        for RtpClock { payload_type, rate } in clocks {
            rates.set(payload_type, rate);
        }
        Ok(Plan::Qos(Box::new(QosPlan {
            source,
            options: FlowOptions {
                by: self.flow,
                looks_inside: self.inner,
                max_flows: self.max_flows,
                rates,
                voice: VoiceOptions {
                    codec: self.voice_codec,
                    delay_ns: self.voice_delay.map(|it| it.as_nanos() as u64),
                },
            },
            sort: self.sort,
            top: self.top,
            filter: (!words.is_empty()).then(|| FilterSource::Expression(words.join(" "))),
            output: self.output.output(self.verbose),
            verbosity,
        })))
    }
}

/// The codec of this name, which is that of one.
fn codec(id: String) -> Codec {
    let mut all = Codec::ALL.into_iter();
    all.find(|it| it.id() == id).unwrap_or_default()
}

fn rtp_clock(text: &str) -> Result<RtpClock, String> {
    let what = "a rate in Hz from 1 to 1000000000, or a payload type from 0 to 127 before it, \
                such as 96:48000";
    let (payload_type, rate) = match text.split_once(':') {
        Some((payload_type, rate)) => (Some(payload_type), rate),
        None => (None, text),
    };
    let payload_type = payload_type.map(|text| match text.parse() {
        Ok(payload_type @ 0..=127) => Ok(payload_type),
        _ => Err(what),
    });
    match rate.parse() {
        Ok(rate @ 1..=1_000_000_000) => Ok(RtpClock {
            payload_type: payload_type.transpose()?,
            rate,
        }),
        _ => Err(what.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<QosPlan, String> {
        let words = ["tscap", "qos"].into_iter().chain(line.split_whitespace());
        match Cli::plan(words.map(Into::into)) {
            Ok(Plan::Qos(plan)) => Ok(*plan),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_file_comes_before_the_filter() {
        let file = QosSource::File("in.pcapng".into());
        let filter = Some(FilterSource::Expression("udp port 9".into()));
        for line in ["in.pcapng udp port 9", "-r in.pcapng udp port 9"] {
            let plan = plan(line).unwrap();
            assert_eq!((&plan.source, &plan.filter), (&file, &filter));
        }
        assert_eq!(plan("in.pcapng").unwrap().filter, None);
        assert!(
            plan("")
                .unwrap_err()
                .contains("give a capture, or an interface")
        );
    }

    #[test]
    fn with_interfaces_all_words_are_the_filter() {
        let plan_of = plan("-i a -i b -Q in --duration 2 -c 5 udp port 9").unwrap();
        let QosSource::Interfaces(asked) = plan_of.source else {
            panic!("{plan_of:?}");
        };
        assert_eq!(asked.interfaces, ["a", "b"]);
        assert_eq!(
            (asked.direction, asked.count),
            (DirectionChoice::In, Some(5))
        );
        let filter = FilterSource::Expression("udp port 9".into());
        assert_eq!(plan_of.filter, Some(filter));
        for refused in ["-r f -i a", "f --duration 2", "-r f -c 1", "f --netns n"] {
            assert!(plan(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn clock_rates_are_read_in_any_order() {
        let rates = |line: &str| plan(&format!("f {line}")).unwrap().options.rates;
        let mut expected = ClockRates::default();
        expected.set(Some(96), 48_000);
        expected.set(None, 90_000);
        assert_eq!(rates("--rtp-clock 90000 --rtp-clock 96:48000"), expected);
        assert_eq!(rates("--rtp-clock 96:48000 --rtp-clock 90000"), expected);
        for refused in ["0", "128:8000", "x", "96:", ":8000"] {
            assert!(
                plan(&format!("f --rtp-clock {refused}")).is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn voice_is_as_assumed() {
        let voice = |line: &str| plan(&format!("f --flow rtp {line}")).unwrap().options.voice;
        assert_eq!(voice(""), VoiceOptions::default());
        for codec in Codec::ALL {
            let line = format!("--voice-codec {} --voice-delay 80ms", codec.id());
            let expected = VoiceOptions {
                codec: Some(codec),
                delay_ns: Some(80_000_000),
            };
            assert_eq!(voice(&line), expected);
        }
        for refused in ["--voice-codec opus", "--voice-delay -1", "--voice-delay x"] {
            assert!(plan(&format!("f {refused}")).is_err(), "{refused}");
        }
    }

    #[test]
    fn flows_are_by_what_is_asked_for() {
        let by = |line: &str| plan(&format!("f {line}")).unwrap().options.by;
        assert_eq!(by(""), FlowBy::FiveTuple);
        assert_eq!(by("--flow 5tuple"), FlowBy::FiveTuple);
        assert_eq!(by("--flow gen"), FlowBy::Gen);
        assert!(plan("f --flow ip").is_err());
        assert!(plan("f --max-flows 0").is_err());
    }
}
