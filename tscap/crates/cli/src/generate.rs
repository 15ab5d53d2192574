//! `tscap gen`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgGroup, Args, CommandFactory, ValueEnum};
use tscap_common::stream::MOST_FLOWS;

use super::reference::ReferenceArgs;
use super::{Cli, Plan, Verbosity, units};
use tscap_sources::reference::ReferencePlan;
use tscap_traffic::generator::{
    DISCARD, Layout, LineRate, Network, Pacing, Pattern, Period, Rate, Step,
};

/// Most steps of a sweep.
const MOST_STEPS: usize = 10_000;

/// Send test frames that carry their own send stamps
///
/// UDP over IPv4 or IPv6 with right checksums. Each payload holds a magic
/// number, the run, the flow, a sequence number, and the TSC and CLOCK_TAI when
/// it was sent. tscap qos --flow gen says what became of the frames, live or from a capture.
///
/// Sends into veth and tap interfaces; into others only with --yes-send-here.
///
/// --echo answers instead: each packet goes back to its sender unchanged.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("gen", ""))]
#[command(group = ArgGroup::new("pace").args(["pattern", "gap", "rate", "flat_out", "echo"]).required(true))]
pub struct GenArgs {
    /// Interface to send on
    #[arg(short, long, value_name = "NAME", required_unless_present = "echo")]
    interface: Option<String>,

    /// Traffic of Orosz & Skopkó's paper
    #[arg(long, value_enum, conflicts_with_all = ["size", "line_rate"])]
    pattern: Option<PatternChoice>,

    /// Frame size in bytes, from the Ethernet header to the end of the payload,
    /// without the frame check sequence [default: the least, 64 with IPv4]. A
    /// sweep: 64,512,1500 or 64-1500/100
    #[arg(long, value_name = "BYTES", value_parser = units::steps)]
    size: Option<units::Steps>,

    /// From the end of a frame to the start of the next on a line of --line-rate:
    /// byte times (12), or a duration (10us), counted as in the papers, without
    /// preamble and frame check sequence. A sweep: 12,100,1000 or 1us,10us
    #[arg(long, value_name = "GAP", value_parser = units::gaps)]
    gap: Option<units::Gaps>,

    /// Frames a second (100k, 1.5M), or bits a second of --size (8Mbit)
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    rate: Option<Rate>,

    /// Send as fast as possible. 16 frames share a stamp, as the kernel passes them
    /// on
    #[arg(long)]
    flat_out: bool,

    /// At a rate or with gaps: pass native frames on in bulks, all that are due within
    /// 1 ms, 64 at most. The sender reaches higher rates then. Each frame is stamped
    /// when it is due, and waits for the last frame of its bulk
    #[arg(long, conflicts_with = "flat_out")]
    bulks: bool,

    /// Line rate that gives byte times their length and forbids impossible gaps: 1G,
    /// 2.5G [default: 1G for --gap, none for --rate]
    #[arg(long, value_name = "BIT/S", value_parser = units::line_rate)]
    line_rate: Option<LineRate>,

    /// Stop after this many frames; of a sweep, each step
    #[arg(short, long, value_name = "FRAMES", value_parser = units::positive::<u64>)]
    count: Option<u64>,

    /// Stop after this time: seconds, or with units (1m30s); of a sweep, each step
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Number of flows, which take turns; each has its own UDP source port
    #[arg(long, value_name = "FLOWS", default_value_t = 1,
          value_parser = units::within(1..=MOST_FLOWS))]
    flows: u32,

    /// Tag frames with this VLAN
    #[arg(long, value_name = "ID", value_parser = units::within(1..=4094_u16))]
    vlan: Option<u16>,

    /// IPv6 rather than IPv4
    #[arg(long)]
    ipv6: bool,

    /// Source address [default: 198.18.0.1, 2001:2::1; for benchmarks, RFC 2544]
    #[arg(long, value_name = "IP", value_parser = units::ip)]
    src: Option<IpAddr>,

    /// Destination address [default: 198.19.0.1, 2001:2:0:8000::1]
    #[arg(long, value_name = "IP", value_parser = units::ip)]
    dst: Option<IpAddr>,

    /// UDP destination port
    #[arg(long, value_name = "PORT", default_value_t = DISCARD,
          value_parser = units::within(0..=u16::MAX))]
    dst_port: u16,

    /// Source MAC address [default: the interface's]
    #[arg(long, value_name = "MAC", value_parser = units::mac)]
    src_mac: Option<units::Mac>,

    /// Destination MAC address [default: 02:00:00:00:00:02, nobody's]
    #[arg(long, value_name = "MAC", value_parser = units::mac)]
    dst_mac: Option<units::Mac>,

    /// How to send
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    sender: SenderChoice,

    #[command(flatten)]
    reference: ReferenceArgs,

    /// CPU to send from [default: the first one allowed]
    #[arg(long, value_name = "CPU", value_parser = units::cpu)]
    cpu: Option<u32>,

    /// Send into an interface that is neither veth nor tap: frames reach a real
    /// network
    #[arg(long)]
    yes_send_here: bool,

    /// Answer UDP packets rather than send: a program in user space that gives each back
    /// to its sender unchanged, on all addresses (--ipv6: those of IPv6)
    #[arg(long, conflicts_with_all = ["interface", "size", "line_rate", "bulks", "flows", "vlan",
          "src", "dst", "dst_port", "src_mac", "dst_mac", "sender", "reference", "yes_send_here"])]
    echo: bool,

    /// UDP port that --echo answers on [default: 9, as of --dst-port]
    #[arg(long, value_name = "PORT", value_parser = units::within(1..=u16::MAX))]
    port: Option<u16>,

    /// Address that --echo answers on [default: all]
    #[arg(long, value_name = "IP", conflicts_with = "ipv6", value_parser = units::ip)]
    address: Option<IpAddr>,

    /// No live line, and one line for each step
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Also print how frames are sent
    #[arg(short, long)]
    verbose: bool,

    /// Write one JSON object a line to standard output: ready, progress every
    /// second, sent after each step, summary
    #[arg(long)]
    json: bool,
}

/// `--pattern`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PatternChoice {
    /// G.729 voice: 140 bytes every 20 ms
    Voip,
    /// HD video: 1368 bytes every 1.368 ms
    Hd,
}

/// `--sender`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SenderChoice {
    /// Native frames into a veth interface if its other end takes them, else
    /// packet
    #[default]
    Auto,
    /// Native XDP frames, made in the kernel: veth only, up to about 3.4 kB
    Native,
    /// An AF_PACKET socket: any Ethernet interface
    Packet,
}

/// What to send, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenPlan {
    /// Name of the interface.
    pub interface: String,
    /// One after the other; at least one.
    pub steps: Vec<Step>,
    /// Frames of each step.
    pub count: Option<u64>,
    /// Time of each step.
    pub duration: Option<Duration>,
    /// Number of flows.
    pub flows: u32,
    /// Headers.
    pub layout: Layout,
    /// Source MAC address, if not the interface's.
    pub source_mac: Option<[u8; 6]>,
    /// Destination MAC address.
    pub destination_mac: [u8; 6],
    /// How to send.
    pub sender: SenderChoice,
    /// Whether frames at a rate are handed on together.
    pub in_bulks: bool,
    /// What the host's clocks, which stamp, are compared with; none for nothing.
    pub references: Vec<ReferencePlan>,
    /// CPU to send from.
    pub cpu: Option<u32>,
    /// Any interface will do.
    pub anywhere: bool,
    /// Whether more was asked for than test frames with this interface's address, and those of
    /// benchmarks, between interfaces of this machine.
    pub is_beyond_tests: bool,
    /// How much to say.
    pub verbosity: Verbosity,
    /// Say it in JSON.
    pub json: bool,
}

/// What to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoPlan {
    /// Where packets come.
    pub address: SocketAddr,
    /// Packets after which it ends.
    pub count: Option<u64>,
    /// Time after which it ends.
    pub duration: Option<Duration>,
    /// CPU to answer from; any if `None`.
    pub cpu: Option<u32>,
    /// How much to say.
    pub verbosity: Verbosity,
    /// Say it in JSON.
    pub json: bool,
}

/// Locally administered, so that no card answers to it.
const NOBODY: units::Mac = units::Mac([2, 0, 0, 0, 0, 2]);

impl GenArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        let error = |kind, text: String| Cli::command().error(kind, text);
        if self.echo {
            return Ok(Plan::Echo(self.echo_plan()));
        }
        if self.port.is_some() || self.address.is_some() {
            let text = "--port and --address are for --echo; what is sent goes to --dst-port and \
                        --dst";
            return Err(error(ErrorKind::ArgumentConflict, text.to_owned()));
        }
        let network = Network::of(self.ipv6, self.src, self.dst).ok_or_else(|| {
            let text = "addresses must all be IPv4, or all IPv6".to_owned();
            error(ErrorKind::ArgumentConflict, text)
        })?;
        let layout = Layout {
            vlan: self.vlan,
            network,
            port: self.dst_port,
        };
        let steps = self
            .steps(layout.least_size())
            .and_then(|steps| check_sizes(steps, &layout))
            .map_err(|text| error(ErrorKind::ValueValidation, text))?;
        if steps.len() > 1 && self.count.is_none() && self.duration.is_none() {
            let text = "a sweep needs --count or --duration, for each of its steps".to_owned();
            return Err(error(ErrorKind::MissingRequiredArgument, text));
        }
        let sender = match (self.bulks, self.sender) {
            (true, SenderChoice::Packet) => {
                let text = "--bulks is for native frames, not --sender packet".to_owned();
                return Err(error(ErrorKind::ArgumentConflict, text));
            }
            (true, _) => SenderChoice::Native,
            (false, sender) => sender,
        };
        let references = self.reference.plans(self.interface.as_deref())?;
        Ok(Plan::Generate(Box::new(GenPlan {
            interface: self.interface.unwrap_or_default(),
            steps,
            count: self.count,
            duration: self.duration,
            flows: self.flows,
            layout,
            source_mac: self.src_mac.map(|mac| mac.0),
            destination_mac: self.dst_mac.unwrap_or(NOBODY).0,
            sender,
            in_bulks: self.bulks,
            references,
            cpu: self.cpu,
            anywhere: self.yes_send_here,
            is_beyond_tests: self.yes_send_here
                || self.src.is_some()
                || self.src_mac.is_some()
                || self.vlan.is_some(),
            verbosity: Verbosity::of(self.quiet, self.verbose),
            json: self.json,
        })))
    }

    fn echo_plan(&self) -> EchoPlan {
        let all = if self.ipv6 {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let address = self.address.unwrap_or(all);
        EchoPlan {
            address: (address, self.port.unwrap_or(DISCARD)).into(),
            count: self.count,
            duration: self.duration,
            cpu: self.cpu,
            verbosity: Verbosity::of(self.quiet, self.verbose),
            json: self.json,
        }
    }

    fn steps(&self, least_size: u32) -> Result<Vec<Step>, String> {
        if let Some(pattern) = self.pattern {
            let (size, gap) = match pattern {
                PatternChoice::Voip => Pattern::Voip.size_and_gap(),
                PatternChoice::Hd => Pattern::Hd.size_and_gap(),
            };
            let pacing = byte_times(LineRate::GIGABIT, size, gap)?;
            return Ok(vec![Step { size, pacing }]);
        }
        let least = [least_size];
        let sizes = self.size.as_ref().map_or(&least[..], |sizes| &sizes.0);
        let line = self.line_rate.unwrap_or(LineRate::GIGABIT);
        let pace = |size: u32| -> Result<Vec<Pacing>, String> {
            if let Some(gaps) = &self.gap {
                let gaps = gaps.0.iter();
                return gaps.map(|gap| with_gap(line, size, *gap)).collect();
            }
            let Some(rate) = self.rate else {
                return Ok(vec![Pacing::FlatOut]);
            };
            let period = rate.period(size);
            let period = period.ok_or("no such rate: it is 0, or over one frame a nanosecond")?;
            match self.line_rate {
                Some(line) => possible(line, size, period).map(|pacing| vec![pacing]),
                None => Ok(vec![Pacing::Paced(period)]),
            }
        };
        let gaps = self.gap.as_ref().map_or(1, |gaps| gaps.0.len());
        if sizes.len() > 1 && gaps > 1 {
            return Err("sweep either --size or --gap, not both".into());
        }
        if sizes.len().max(gaps) > MOST_STEPS {
            return Err(format!("a sweep of more than {MOST_STEPS} steps"));
        }
        let mut steps = Vec::new();
        for size in sizes.iter().copied() {
            steps.extend(pace(size)?.into_iter().map(|pacing| Step { size, pacing }));
        }
        Ok(steps)
    }
}

fn with_gap(line: LineRate, size: u32, gap: units::Gap) -> Result<Pacing, String> {
    match gap {
        units::Gap::ByteTimes(gap) => byte_times(line, size, gap),
        units::Gap::Ns(gap) => {
            let period = line.period_with_ns(size, gap);
            possible(line, size, period.ok_or(NO_PERIOD)?)
        }
    }
}

fn byte_times(line: LineRate, size: u32, gap: u64) -> Result<Pacing, String> {
    let period = line.period(size, gap);
    possible(line, size, period.ok_or(NO_PERIOD)?)
}

const NO_PERIOD: &str = "frames would come more than one a nanosecond, or 292 years apart";

/// Refuses what leaves less than the least gap between frames.
fn possible(line: LineRate, size: u32, period: Period) -> Result<Pacing, String> {
    if line.can_carry(size, period) {
        return Ok(Pacing::Paced(period));
    }
    let least = line.period(size, LineRate::LEAST_GAP);
    Err(format!(
        "frames of {size} bytes each {} ns are too close for a line of {} bit/s, on which they \
         need {} ns with the least gap, {} byte times; give another --line-rate, or --flat-out",
        period.ns(),
        line.0,
        least.map_or(0, Period::ns),
        LineRate::LEAST_GAP,
    ))
}

/// Refuses frames that can't be; the MTU is looked at later.
fn check_sizes(steps: Vec<Step>, layout: &Layout) -> Result<Vec<Step>, String> {
    let least = layout.least_size();
    match steps.iter().find(|step| step.size < least) {
        None => Ok(steps),
        Some(step) => Err(format!(
            "a frame of {} bytes is too short: with these headers and the 22 bytes of stamps it \
             has at least {least}",
            step.size
        )),
    }
}

#[cfg(test)]
mod tests;
