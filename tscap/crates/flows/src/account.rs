//! What became of every packet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of the packets: `seen` = `in_flows` + every other count up to `unrecorded`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Packets that the programs saw, or that the file has.
    pub seen: u64,
    /// Of a flow: the sum of its flows' packets, and of those that are evicted and not listed.
    pub in_flows: u64,
    /// Fragments of IP packets, of which only the first one has ports. With `dscp` they are in
    /// flows.
    pub fragments: u64,
    /// Neither IPv4 nor IPv6.
    pub non_ip: u64,
    /// IP, but without what flows are by.
    pub without_key: u64,
    /// The headers contradict themselves or the packet's length; a wrong checksum of
    /// `tscap gen`.
    pub malformed: u64,
    /// Cut by the snaplen before what flows are by.
    pub cut: u64,
    /// Of an interface that is not Ethernet: not looked into.
    pub not_ethernet: u64,
    /// In simple packet blocks of a file, which have no times.
    pub untimed: u64,
    /// Not recorded by the programs of a live measurement: filtered or lost, by outcome.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unrecorded: BTreeMap<String, u64>,
    /// Flows that were taken out of the table, the longest idle first, to make room.
    pub evicted: Evicted,
}

impl Account {
    /// Counts packets that did not come as far as the flows.
    pub(crate) fn note_unrecorded(&mut self, outcome: &str, packets: u64) {
        if packets > 0 {
            self.seen += packets;
            *self.unrecorded.entry(outcome.to_owned()).or_default() += packets;
        }
    }

    /// Whether each packet has an outcome.
    pub fn adds_up(&self) -> bool {
        let outcomes = [
            self.in_flows,
            self.fragments,
            self.non_ip,
            self.without_key,
            self.malformed,
            self.cut,
            self.not_ethernet,
            self.untimed,
        ];
        let unrecorded: u64 = self.unrecorded.values().sum();
        self.seen == outcomes.iter().sum::<u64>() + unrecorded
    }
}

/// Flows that were taken out of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    /// Flows that were taken out to make room for others.
    pub flows: u64,
    /// Of them, those that are not among the flows that are listed, since there were more than
    /// the table holds.
    pub unlisted: u64,
    /// Packets of those that are not listed.
    pub unlisted_packets: u64,
    /// Bytes of those packets, with Ethernet's header and without its checksum.
    pub unlisted_bytes: u64,
    /// Packets that they have lost, by their sequence numbers.
    pub unlisted_lost: u64,
}
