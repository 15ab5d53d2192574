//! Sessions between two hosts: what `tscap delay --to` tells of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tscap_statistics::{Summary, Voice};

use super::Delays;

/// A session of a session-sender with one session-reflector (RFC 8762).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerSession {
    /// The reflector, as it was asked for.
    pub peer: String,
    /// Its address and port.
    pub address: String,
    /// The address and port that packets were sent from.
    pub local: String,
    /// The interface.
    pub interface: String,
    /// Session identifier (RFC 8972); 0 is none.
    pub ssid: u16,
    /// Whether packets were authenticated.
    pub authenticated: bool,
    /// Octets of a test packet, without the headers of UDP and IP.
    pub size: u32,
    /// What became of the packets.
    pub account: SessionAccount,
    /// What the peer says of its clock; null without a reply.
    pub peer_clock: Option<PeerClock>,
    /// How far the clocks are apart, and what that is known by.
    pub alignment: AlignmentReport,
    /// There and back, without the time at the peer; null of no packet.
    pub round_trip: Option<Delays>,
    /// There.
    pub forward: Option<Delays>,
    /// Back.
    pub back: Option<Delays>,
    /// How delays there vary, which needs no alignment.
    pub forward_variation: Option<Variation>,
    /// The same back.
    pub back_variation: Option<Variation>,
    /// Voice quality there by the E-model (ITU-T G.107): of a call whose packets meet what those of
    /// the session have met; null where delays there are not known.
    #[serde(default)]
    pub voice: Option<Voice>,
    /// The slowest round trip that no packet is missing behind, ns: replies that came later are
    /// late.
    pub wait_ns: u64,
}

/// What became of the packets, each of which has one outcome: `sent` = `answered` + `late` +
/// `lost_forward` + `lost_back` + `undecided` + `not_left` + every count of `rejected`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAccount {
    /// Given to the kernel.
    pub sent: u64,
    /// Answered in time.
    pub answered: u64,
    /// Answered after the time to wait.
    pub late: u64,
    /// The reflector did not get it.
    pub lost_forward: u64,
    /// The reflector answered, and its reply did not come.
    pub lost_back: u64,
    /// Not answered, and nobody knows which way it was lost: the reflector keeps no state, or has
    /// answered nothing later.
    pub undecided: u64,
    /// Runs of packets that were not answered in time, each between two that were.
    #[serde(default)]
    pub loss_periods: u64,
    /// The queueing discipline of this host dropped it, or it could not be sent.
    pub not_left: u64,
    /// Its only reply was not to be used, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Replies, and other packets to the port, that answer no packet of the session, by reason.
    pub unasked: BTreeMap<String, u64>,
    /// Further replies, of a packet that arrived more than once.
    pub copies_forward: u64,
    /// Further replies, of a reply that arrived more than once.
    pub copies_back: u64,
    /// Packets that the reflector got behind a later one.
    pub reordered_forward: u64,
    /// Replies that came behind a later one.
    pub reordered_back: u64,
    /// Whether the reflector counts its replies, so that loss has a direction; null while nothing
    /// shows that.
    pub stateful: Option<bool>,
}

impl SessionAccount {
    /// Whether each packet has one outcome.
    pub fn adds_up(&self) -> bool {
        let rejected: u64 = self.rejected.values().sum();
        self.sent
            == self.answered
                + self.late
                + self.lost_forward
                + self.lost_back
                + self.undecided
                + self.not_left
                + rejected
    }

    /// Packets that left and were not answered.
    pub fn lost(&self) -> u64 {
        self.lost_forward + self.lost_back + self.undecided
    }
}

/// What a peer says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerClock {
    /// Error Estimate: greatest error of its stamps, ns; against UTC if it is synchronised, else
    /// against its own clock.
    pub error_estimate_ns: u64,
    /// S: it follows UTC by an external source.
    pub synchronised: bool,
    /// Z: its times are PTP's, else NTP's.
    pub is_ptp: bool,
}

/// How far the clocks of both hosts are apart, and what that is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignmentReport {
    /// What was asked for: "both", "exchange" or "utc".
    pub by: String,
    /// Greatest difference of the clocks' rates by assumption, parts per billion.
    pub max_drift_ppb: u64,
    /// Greatest difference of the least delays there and back by assumption, ns; null without
    /// one.
    pub max_asymmetry_ns: Option<u64>,
    /// Greatest error of a delay each way by the alignment, ns; null if none was known.
    pub bound_ns: Option<u64>,
    /// The same, by half of the packets.
    pub median_bound_ns: Option<u64>,
    /// How far the peer's clock was ahead at the last packet, ns.
    pub peer_ahead_ns: Option<i64>,
    /// How much faster the peer's clock runs, parts per billion.
    pub skew_ppb: Option<i64>,
    /// Greatest error of that, parts per billion.
    pub skew_bound_ppb: Option<u64>,
    /// Greatest error of both clocks against UTC by their own account, ns; null where one of them
    /// is not synchronised.
    pub utc_bound_ns: Option<u64>,
    /// How often the peer's clock was set, or slewed faster than the drift.
    pub changes: u64,
    /// Packets at which exchanges and UTC exclude each other: one of the clocks is not where it
    /// says.
    pub contradictions: u64,
    /// Packets that were answered, or matched, and whose delays each way are not known.
    pub unaligned: u64,
    /// Of two captures: packets there and back that both have, by which they are aligned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<[u64; 2]>,
}

/// How delays one way vary: the peer's clock and this one each measure intervals, so that how
/// far they are apart is not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    /// Of neighbouring packets that were both answered, by how much one took longer than the one
    /// before (IPDV, RFC 3393), ns.
    pub ipdv: Summary,
    /// Interarrival jitter (RFC 3550, section 6.4.1) at the end, ns.
    pub jitter_ns: u64,
    /// Greatest error of one difference, ns: of four stamps, and of the clocks' rates.
    pub bound_ns: u64,
}
