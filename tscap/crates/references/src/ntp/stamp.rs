//! When a packet passed an interface.

use tscap_clock::TscCycles;

/// When a packet passed, by the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketStamp {
    /// The counter.
    pub tsc: TscCycles,
    /// Greatest error of that, ns.
    pub error_ns: u64,
}

impl PacketStamp {
    /// Greatest error of two of them, ns.
    pub(crate) fn error_of(both: [Self; 2]) -> u64 {
        both[0].error_ns.max(both[1].error_ns)
    }
}
