//! The slowest packets, with what was kept of them at both ends.

use std::cmp::Reverse;

use super::Passed;
use tscap_clock::RealNs;

/// So many are kept.
const MOST: usize = 10;

/// A slow packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its delay, ns.
    pub delay_ns: i64,
    /// When it entered, and its bytes then.
    pub entered: (RealNs, Vec<u8>),
    /// When it left, and its bytes then.
    pub left: (RealNs, Vec<u8>),
    /// Length at the entry, bytes.
    pub length: u32,
}

/// The slowest packets so far.
#[derive(Clone, Debug, Default)]
pub struct Worst(Vec<Packet>);

impl Worst {
    /// Takes in a packet that left by the first exit.
    #[inline]
    pub fn take(&mut self, delay_ns: i64, entered: RealNs, left: RealNs, passed: &Passed<'_>) {
        if self.0.len() == MOST && self.0[MOST - 1].delay_ns >= delay_ns {
            return;
        }
        self.0.truncate(MOST - 1);
        let at = self.0.partition_point(|it| it.delay_ns >= delay_ns);
        self.0.insert(
            at,
            Packet {
                delay_ns,
                entered: (entered, passed.bytes_in.to_vec()),
                left: (left, passed.bytes_out[0].to_vec()),
                length: passed.length,
            },
        );
    }

    /// They, the slowest first.
    pub(crate) fn into_packets(self) -> Vec<Packet> {
        debug_assert!(self.0.is_sorted_by_key(|it| Reverse(it.delay_ns)));
        self.0
    }
}
