//! What `tscap qos --json` writes at its end and `tscap report` reads: one object, of the kind
//! "qos", version [`VERSION`]. Fields are only added within a version; readers ignore those
//! that they don't know.

use serde::{Deserialize, Serialize};

pub use super::account::{Account, Evicted};
use tscap_results::envelope::Envelope;
pub use tscap_statistics::Bin;
use tscap_statistics::{Summary, Voice};
use tscap_streams::DelayBasis;

/// Version of the object.
pub const VERSION: u32 = 1;

/// The quality of flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Of the kind [`Kind::Qos`], [`VERSION`].
    ///
    /// [`Kind::Qos`]: tscap_results::envelope::Kind::Qos
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// What became of the packets.
    pub account: Account,
    /// Where packets were stamped, and how far the stamps can be trusted.
    pub places: Vec<Place>,
    /// The flows, in the order that was asked for; those that were still in the table first.
    pub flows: Vec<FlowReport>,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
}

/// What a flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum FlowBy {
    /// Protocol, addresses and ports
    #[default]
    #[value(name = "5tuple")]
    #[serde(rename = "5tuple")]
    FiveTuple,
    /// Addresses, ports and synchronisation source of RTP over UDP
    Rtp,
    /// The DSCP of the IP header
    Dscp,
    /// Run and flow of tscap gen
    Gen,
}

/// What comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum SortOrder {
    /// The flow of the most packets
    #[default]
    Packets,
    /// That of the greatest jitter; of flows without send times, of the greatest standard
    /// deviation of inter-arrival times
    Jitter,
    /// That of the most lost packets; of TCP, of the most retransmitted bytes
    Loss,
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// What a flow is.
    pub flow: FlowBy,
    /// Whether flows inside VXLAN and GRE were looked for.
    pub inner: bool,
    /// What comes first.
    pub sort: SortOrder,
    /// So many flows, the first ones, have histogram and series, and are shown.
    pub top: u64,
    /// Most flows at a time.
    pub max_flows: u64,
    /// Memory that so many flows of this kind take, bytes.
    pub memory_bytes: u64,
    /// The file that was read; null for a live measurement.
    pub file: Option<String>,
}

/// Where packets were stamped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The interface; null if the file does not name it.
    pub interface: Option<String>,
    /// Whether packets that it sent were stamped, rather than those that it received.
    pub sent: bool,
    /// What intervals are measured by.
    pub intervals: IntervalBasis,
    /// How far one-way delays can be trusted.
    pub delays: DelayBasis,
    /// Its frames, with [`FlowBy::Gen`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamFrames>,
}

/// Frames of a place where streams of `tscap gen` were looked for: `frames` = `streams` +
/// `others` + `malformed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFrames {
    /// All that match the filter, and have a time.
    pub frames: u64,
    /// Of streams: the sum of the packets of its flows.
    pub streams: u64,
    /// Without a stream header.
    pub others: u64,
    /// With a stream header that is not to be trusted, or cut before it; not
    /// counted in any stream.
    pub malformed: u64,
    /// Of `streams`: with the right UDP checksum.
    pub checksum_right: u64,
    /// Of `streams`: sent without a checksum.
    pub checksum_absent: u64,
    /// Of `streams`: not captured whole, so that the checksum can't be known.
    pub checksum_unknown: u64,
    /// Of `malformed`: cut before it can be told what they are.
    pub cut: u64,
    /// Of `malformed`: lengths in the headers contradict the frame's.
    pub length_wrong: u64,
    /// Of `malformed`: a wrong UDP checksum.
    pub checksum_wrong: u64,
    /// Of `malformed`: UDP source port and flow disagree.
    pub port_wrong: u64,
}

/// What intervals are measured by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalBasis {
    /// "the file's times", or the function that reads the clock of the raw stamps.
    pub clock: String,
    /// Step of the stamps, ns.
    pub step_ns: u64,
    /// Greatest error of both ends of an interval together, ns; null if nothing bounds it.
    pub ends_ns: Option<u64>,
    /// Greatest relative error of the clock's rate, parts per billion; 0 where an interval is
    /// a difference of the host's clock.
    pub rate_ppb: u64,
    /// Why there is no bound.
    pub unbounded: Option<String>,
}

impl IntervalBasis {
    /// Greatest error of an interval of `longest_ns`.
    pub fn bound_ns(&self, longest_ns: u64) -> Option<u64> {
        let by_rate = u128::from(longest_ns) * u128::from(self.rate_ppb);
        let by_rate = u64::try_from(by_rate.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
        self.ends_ns.map(|ends| ends.saturating_add(by_rate))
    }
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// What it is called, such as "10.0.0.1:5004 → 10.0.0.2:5004 udp".
    pub name: String,
    /// Index of where its packets were stamped.
    pub place: u16,
    /// VLAN tags, the outer one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<u16>,
    /// Whether it came inside VXLAN or GRE.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inner: bool,
    /// Whether it was taken out of the table to make room: what came later is another flow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evicted: bool,
    /// From the start of the measurement to its first packet, s.
    pub first_s: f64,
    /// From its first packet to its last one, s.
    pub seconds: f64,
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames, without the checksum of Ethernet.
    pub bytes: u64,
    /// Packets a second: intervals by `seconds`; null of one packet.
    pub packets_per_s: Option<f64>,
    /// Bits a second: those of all packets but the first, by `seconds`.
    pub bits_per_s: Option<f64>,
    /// Time from one packet to the next, in order of arrival.
    pub inter_arrival: Option<Figures>,
    /// How often a stamp was before that of the packet before: such intervals are in no
    /// figure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub went_back: u64,
    /// One-way delay (RFC 7679), of `tscap gen`.
    pub delay: Option<Figures>,
    /// Delay less that of the packet that was sent just before, where it also came just before
    /// (RFC 3393), of `tscap gen`.
    pub ipdv: Option<Ipdv>,
    /// Magnitude of `ipdv`: how far an inter-arrival time is off the inter-send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_error: Option<Figures>,
    /// Delay less the least one (RFC 5481), of `tscap gen`.
    pub pdv: Option<Figures>,
    /// J += (|D| − J)/16 (RFC 3550), of RTP and of `tscap gen`.
    pub jitter: Option<Jitter>,
    /// Of flows with sequence numbers.
    pub loss: Option<Loss>,
    /// Of flows with sequence numbers.
    pub reordering: Option<Reordering>,
    /// What RTP says besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtp: Option<RtpFigures>,
    /// Of RTP whose clock is known: how much longer a packet took than the fastest one of the
    /// last 10 to 30 s, by arrivals less times of sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Figures>,
    /// Of a stream whose codec is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceFigures>,
    /// Of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<Retransmissions>,
    /// Of UDP that is or may be QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicFigures>,
    /// Round trips of TCP and QUIC, without a peer that measures; one for each way to find them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_trips: Vec<RoundTrip>,
    /// How many inter-arrival times lie in which range; of the flows that come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<Bin>,
    /// Over time, in equal intervals; of the flows that come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Interval>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Times of a flow, ns. Quantiles come from ranges at most 1/16 of their values wide; delays and
/// variations of `tscap gen` in a file are exact of 4,096 values, and right within 0.05 % of
/// more. One with fewer than 10 values beyond it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Number of values.
    pub n: u64,
    /// Least.
    pub min_ns: i64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation, of a sample (n − 1); 0 of one value.
    pub sd_ns: f64,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 90 % are no greater.
    pub p90_ns: Option<i64>,
    /// 99 % are no greater.
    pub p99_ns: Option<i64>,
    /// 99.9 % are no greater.
    pub p99_9_ns: Option<i64>,
    /// Greatest.
    pub max_ns: i64,
    /// How many are negative: of delays, clocks that disagree.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub negative: u64,
    /// Greatest error of any one; null if nothing bounds it.
    pub bound_ns: Option<u64>,
}

impl Figures {
    /// Of values each of which may be off by what `bound_ns` says of the greatest magnitude, ns.
    pub(crate) fn of(summary: Summary, bound_ns: impl Fn(u64) -> Option<u64>) -> Self {
        let longest = summary.min.unsigned_abs().max(summary.max.unsigned_abs());
        Self {
            n: summary.n,
            min_ns: summary.min,
            mean_ns: summary.mean,
            sd_ns: summary.sd,
            p50_ns: summary.p50,
            p90_ns: summary.p90,
            p99_ns: summary.p99,
            p99_9_ns: summary.p99_9,
            max_ns: summary.max,
            negative: summary.negative,
            bound_ns: bound_ns(longest),
        }
    }
}

/// Variation of the delay of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ipdv {
    /// The values. Their bound holds where both intervals are of one TSC; the slews of the
    /// sender's clock are not in it.
    #[serde(flatten)]
    pub figures: Figures,
    /// Pairs whose send times are those of the counter that stamped their arrival.
    pub tsc_pairs: u64,
    /// Pairs whose send times are of the sender's CLOCK_TAI.
    pub tai_pairs: u64,
}

/// Jitter by RFC 3550, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Pairs of packets that it was formed from.
    pub n: u64,
    /// After the last one.
    pub last_ns: f64,
    /// Mean over the pairs.
    pub mean_ns: f64,
    /// Greatest value that the jitter had, ns.
    pub max_ns: f64,
    /// Greatest error of any one; null if nothing bounds it.
    pub bound_ns: Option<u64>,
}

/// Loss and duplication: `received` = `distinct` + `duplicates` + `too_late`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Packets that are in the sequence.
    pub received: u64,
    /// Different numbers that came.
    pub distinct: u64,
    /// Copies after the first one (RFC 5560).
    pub duplicates: u64,
    /// Packets that came when the greatest number was 1,024 or more ahead: late, or copies. Of
    /// `tscap gen` in a file there are none: all of its numbers are kept.
    pub too_late: u64,
    /// Numbers that did not come between the least and the greatest (RFC 7680).
    pub lost: u64,
    /// Runs of lost packets: loss periods (RFC 3357).
    pub loss_periods: u64,
    /// Packets of the longest.
    pub longest_loss: u64,
    /// Least number, unwrapped; negative before a wrap. Since the last restart of a source.
    pub first: Option<i64>,
    /// Greatest number, unwrapped. Since the last restart of a source.
    pub last: Option<i64>,
}

/// Reordering, by RFC 4737.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// Packets with a smaller number than one that came before (section 3.3); of copies only
    /// the first counts.
    pub reordered: u64,
    /// How far; null if there are none.
    pub extent: Option<Extent>,
}

/// Reordering extent (section 4.2): how many packets before a reordered one the first with a
/// greater number came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// Mean of the extents of the reordered packets, packets.
    pub mean: f64,
    /// Greatest of the extents, packets.
    pub max: u64,
    /// Those that reach back behind 32 gaps, of `tscap gen` in a file behind 16,384: counted as
    /// reaching to the oldest of these.
    pub cut: u64,
    /// All of them, of `tscap gen` in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_all: Option<Summary>,
}

/// What RTP says besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RtpFigures {
    /// The latest payload type.
    pub payload_type: u8,
    /// Rate of its clock, Hz; null if it is not known (--rtp-clock).
    pub clock_hz: Option<u32>,
    /// Packets with a number far from those before: not in the sequence (RFC 3550, A.1).
    pub jumped: u64,
    /// How often the source began anew.
    pub restarts: u64,
}

/// Bytes of a TCP flow that were seen again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retransmissions {
    /// Segments with such bytes.
    pub segments: u64,
    /// Bytes of TCP's payload that had been seen before.
    pub bytes: u64,
    /// Gaps in the bytes that were forgotten, since there were more than 8 at a time: what
    /// fills them later counts as seen again.
    pub gaps_forgotten: u64,
}

/// Voice quality by the E-model (ITU-T G.107).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoiceFigures {
    /// The quality, and what it comes from.
    #[serde(flatten)]
    pub voice: Voice,
    /// Where the delay of the path comes from.
    pub path: PathDelay,
}

/// Where the one-way delay of a path comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathDelay {
    /// It was measured, with a bound.
    Measured,
    /// It was given (--voice-delay).
    Given,
    /// It is not known: 0 stands for it, and the quality is no better than this.
    Unknown,
}

/// Round trips, found in one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// In which way.
    pub by: RoundTripBy,
    /// The times.
    #[serde(flatten)]
    pub figures: Figures,
}

/// How round trips are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundTripBy {
    /// From a packet of this flow where it is stamped to the receiver, and back by the
    /// acknowledgement of just its bytes. Packets that are sent again, and those behind a gap,
    /// are left out.
    Acknowledgement,
    /// The same by the timestamps option (RFC 7323): to the first echo of a packet's TSval.
    Timestamps,
    /// From one end to the other and back, by QUIC's spin bit (RFC 9000, section 17.4): from one
    /// change of its value to the next.
    SpinBit,
}

/// What QUIC says in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicFigures {
    /// Why the flow is taken for QUIC.
    pub known_by: QuicSign,
    /// Datagrams that begin with a short header (1-RTT).
    pub short_packets: u64,
    /// What the spin bit does.
    pub spin: SpinBit,
    /// Changes of the spin bit that were left out, since they came so soon after the one before
    /// that packets have changed places.
    pub reordered_edges: u64,
}

/// Why a flow is taken for QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuicSign {
    /// A long header of version 1 or 2 was seen.
    LongHeader,
    /// By UDP port 443 and the first bits of its datagrams: it may be another protocol.
    #[serde(rename = "port_443")]
    Port443,
}

/// What the spin bit of a direction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpinBit {
    /// It changes once in a round trip.
    Spins,
    /// It has one value: an endpoint does not take part.
    Constant,
    /// Its values can't be told from random ones by packet: an endpoint does not take part, or
    /// there are about two packets in a round trip.
    Random,
    /// It has changed, and there are too few packets to tell, or too few changes for a time.
    Undecided,
    /// No packet has one.
    Unseen,
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, since the start of the measurement, s.
    pub at_s: f64,
    /// Packets.
    pub packets: u64,
    /// Longest inter-arrival time that ended in it, ns.
    pub longest_ns: f64,
}
