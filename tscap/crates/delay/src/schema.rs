//! What `tscap delay --json` writes at the end and `tscap report` reads: one object, of the
//! kind "delay", version [`VERSION`]. Fields are only added within a version; readers ignore
//! those that they don't know.

mod session;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tscap_common::key::KeyOf;

use tscap_results::envelope::Envelope;
pub use tscap_statistics::Bin;
use tscap_statistics::Summary;

pub use session::{AlignmentReport, PeerClock, PeerSession, SessionAccount, Variation};

/// Version of the object.
pub const VERSION: u32 = 1;

/// A measurement of delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Of the kind [`Kind::Delay`], [`VERSION`].
    ///
    /// [`Kind::Delay`]: tscap_results::envelope::Kind::Delay
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// What is measured, one way or both.
    pub passages: Vec<Passage>,
    /// Sessions with other hosts; absent unless there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<PeerSession>,
    /// Between captures of two hosts: how far their clocks are apart, and what that is known by;
    /// absent where both places are of one clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment: Option<AlignmentReport>,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
}

/// Where packets are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By programs at both ends of what is measured.
    Hooks,
    /// On a port to which both ends are mirrored: the second sighting less the first.
    Mirror,
    /// End to end, from a request that is sent to its reply.
    Rtt,
    /// By programs, from a request that is received to its reply that is sent.
    Reflect,
    /// By test packets to a session-reflector on another host (RFC 8762).
    Sessions,
}

/// What makes two sightings those of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Run, flow and sequence number of `tscap gen`
    Gen,
    /// The whole frame
    Bridge,
    /// The packet without what a router changes: addresses of the link layer, TTL or hop
    /// limit, and checksums
    Route,
    /// Protocol, IP id, length and payload: what neither a router nor NAT changes
    Nat,
    /// A request and its reply that echoes it: ports and addresses either way round, and the
    /// payload
    Reply,
}

impl Match {
    /// What keys are of.
    pub fn key_of(self) -> KeyOf {
        match self {
            Self::Gen => KeyOf::Gen,
            Self::Bridge => KeyOf::Bridge,
            Self::Route => KeyOf::Route,
            Self::Nat => KeyOf::Nat,
            Self::Reply => KeyOf::Reply,
        }
    }
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Where packets are seen.
    pub how: How,
    /// What makes two sightings those of one packet.
    pub matched_by: Match,
    /// What the measurement is called beside others, if that was given (--label).
    pub label: Option<String>,
    /// The function that reads the clock of the stamps.
    pub clock: String,
    /// The file that was read; null for a live measurement.
    pub file: Option<String>,
    /// Longest delay that is looked for, ns.
    pub window_ns: u64,
    /// Packets that are remembered at a time, at most.
    pub capacity: u64,
    /// Memory that they take, bytes.
    pub memory_bytes: u64,
    /// Load on the CPUs meanwhile, such as "paper on CPU 1".
    pub load: Option<String>,
    /// Traffic beside meanwhile, such as "25 Mbit/s of 192-byte frames on p0".
    pub parallel: Option<String>,
    /// The mean of another measurement that corrected delays are less by.
    pub correction: Option<Correction>,
}

/// What is taken off the delays (Eq. 2 of the paper on single-hop delay): the mean of a
/// measurement without the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// The file that it was read from.
    pub file: String,
    /// Mean delay without the device, ns, which is taken off each delay.
    pub mean_ns: f64,
}

/// One way through what is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// Such as "a → b".
    pub name: String,
    /// Where packets enter.
    pub entry: MeasuringPoint,
    /// Where they leave, the one that counts first: behind the queueing discipline, then
    /// before it.
    pub exits: Vec<Exit>,
    /// From the exit before the queueing discipline to the one behind it, of packets that were
    /// seen once at each.
    pub queueing: Option<Delays>,
}

/// A place where packets are seen, with the account of its programs: `seen` = `entered` or
/// `left` of the matcher + `unkeyed` + every count of `unrecorded`, exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuringPoint {
    /// The interface.
    pub interface: String,
    /// Where packets are stamped there, such as "native XDP".
    pub hook: String,
    /// Frames that entered the program.
    pub seen: u64,
    /// Frames without what they could be matched by.
    pub unkeyed: u64,
    /// Frames that were not recorded, by outcome: `filtered`, or a loss.
    pub unrecorded: BTreeMap<String, u64>,
    /// Sightings that went to the matcher.
    pub keyed: u64,
}

/// One exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Where it is: "tap", "egress", "peer", "mirror", "xdp".
    pub point: String,
    /// The place.
    pub spot: MeasuringPoint,
    /// What became of the packets between the entry and here.
    pub account: Account,
    /// Of the packets that were matched; null of none.
    pub delays: Option<Delays>,
    /// Between captures of two hosts: how delays vary, which needs no alignment of the clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
}

/// What became of the sightings, each of which has one outcome:
/// `entered` = `matched` + `lost_inside` + `pending` + `ambiguous_in` + `untracked_in` and
/// `left` = `matched` + `originated` + `early` + `ambiguous_out` + `untracked_out`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Sightings at the entry.
    pub entered: u64,
    /// Sightings at the exit.
    pub left: u64,
    /// Pairs: one sighting at the entry and one at the exit, no earlier, within the window.
    pub matched: u64,
    /// At the entry, and not at the exit within the window.
    pub lost_inside: u64,
    /// At the entry less than a window before the end, and not at the exit until then. Of two
    /// captures also those at the entry before that of the exit began.
    pub pending: u64,
    /// At the entry, with a key that more than one packet had within the window.
    pub ambiguous_in: u64,
    /// At the entry when no more packets could be remembered.
    pub untracked_in: u64,
    /// At the exit, and not at the entry within the window before.
    pub originated: u64,
    /// At the exit less than a window after the start, and not at the entry since. Of two
    /// captures also those at the exit after that of the entry had ended.
    pub early: u64,
    /// At the exit, with a key that more than one packet had within the window.
    pub ambiguous_out: u64,
    /// At the exit when no more packets could be remembered.
    pub untracked_out: u64,
}

/// Delays, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Of all of them.
    pub summary: Summary,
    /// Greatest error of any one: that of both stamps, and of the clock's rate over the
    /// longest delay. Of two clocks, also how far each may be off UTC. Null if nothing bounds it.
    pub bound_ns: Option<u64>,
    /// Latency and its variation by RFC 8219, with enough packets.
    pub rfc8219: Option<Rfc8219>,
    /// What is known of the maximum.
    pub certificate: Certificate,
    /// The slowest packets, the slowest first; ten at most.
    pub slowest: Vec<Slow>,
    /// How many delays lie in which range, in ascending order, without empty ranges.
    pub histogram: Vec<Bin>,
    /// Over time, in equal intervals in ascending order; some hundreds at most.
    pub series: Vec<Interval>,
    /// The first 200 ms, packet by packet, thinned to some thousands.
    pub first: Vec<First>,
}

/// RFC 8219, sections 7.2 and 7.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rfc8219 {
    /// Typical latency: the median, ns.
    pub typical_ns: i64,
    /// Worst-case latency: 99.9 % of the packets are no slower, ns.
    pub worst_case_ns: i64,
    /// Packet delay variation: that less the minimum, ns.
    pub pdv_ns: i64,
}

/// What N delays say of the greatest that there can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certificate {
    /// At 99 % confidence at most a share `exceeding` of packets is slower than `max_ns` +
    /// `bound_ns`, if delays farther apart than a block do not depend on each other and
    /// nothing else changes.
    Holds {
        /// Packets.
        n: u64,
        /// The greatest delay, ns.
        max_ns: i64,
        /// Its error, ns.
        bound_ns: u64,
        /// ln(100) / `blocks`.
        exceeding: f64,
        /// Independent blocks that the packets make.
        blocks: u64,
        /// Packets in one.
        block_packets: u64,
        /// The greatest correlation of neighbouring blocks that remained.
        correlation: f64,
    },
    /// There is none.
    None {
        /// The reason.
        why: String,
    },
}

/// A slow packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// Its delay, ns.
    pub delay_ns: i64,
    /// When it entered, CLOCK_REALTIME, ns since the epoch.
    pub entered_ns: u64,
    /// CPU on which it was seen at the entry; null of a file, which does not say it.
    pub cpu_in: Option<u32>,
    /// CPU on which it was seen at the exit; null of a file.
    pub cpu_out: Option<u32>,
    /// Length at the entry, bytes.
    pub length: u32,
    /// What it was matched by, hexadecimal.
    pub key: String,
    /// Its addresses, ports and protocol, such as "10.0.0.1:5 → 10.0.0.2:6 udp"; absent unless
    /// it is IP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, since the start, s.
    pub at_s: f64,
    /// Packets that entered in it and were matched.
    pub n: u64,
    /// Least delay of these packets, ns.
    pub min_ns: i64,
    /// Mean delay of these packets, ns.
    pub mean_ns: f64,
    /// Greatest delay of these packets, ns.
    pub max_ns: i64,
}

/// One of the first packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// When it entered, since the first one, ns.
    pub at_ns: u64,
    /// Its delay, ns.
    pub delay_ns: i64,
}
