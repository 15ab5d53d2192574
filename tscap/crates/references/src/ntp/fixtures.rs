//! Packets of tests.

use super::{NtpTime, PacketStamp};
use tscap_clock::{RealNs, TscCycles};

/// 2026-11-25 00:00:00 UTC, ns.
pub const NOON: u64 = 1_795_564_800_000_000_000;

/// A stamp without an error.
pub fn exactly(cycles: u64) -> PacketStamp {
    PacketStamp {
        tsc: TscCycles(cycles),
        error_ns: 0,
    }
}

/// A good reply to no request: stratum 1, with root delay and dispersion of 1/65536 s.
pub fn reply() -> [u8; 48] {
    reply_to(NtpTime(0), [NOON, NOON + 10_000].map(RealNs))
}

/// A good reply to the request with this transmit time.
pub fn reply_to(cookie: NtpTime, [tb, te]: [RealNs; 2]) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..4].copy_from_slice(&[0x24, 1, 6, 0xe0]);
    bytes[7] = 1;
    bytes[11] = 1;
    bytes[12..16].copy_from_slice(b"TEST");
    let corrected = NtpTime::of(RealNs(tb.0 - 1_000_000_000));
    for (at, time) in [
        (16, corrected),
        (24, cookie),
        (32, NtpTime::of(tb)),
        (40, NtpTime::of(te)),
    ] {
        bytes[at..at + 8].copy_from_slice(&time.0.to_be_bytes());
    }
    bytes
}
