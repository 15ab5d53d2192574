//! Stamps against the readings of CLOCK_TAI around them, which `probe_bracket_*`
//! leaves in each frame.

use crate::recording::Packet;

/// How far the packet's time is outside its bracket, ns; 0 if it is inside.
/// `tai_offset_s` is TAI − REALTIME.
#[track_caller]
pub fn outside(packet: &Packet, tai_offset_s: i64) -> u64 {
    let reading = |at: usize| {
        let bytes = packet.data[at..at + 8].try_into().expect("eight bytes");
        u64::from_ne_bytes(bytes)
    };
    let (before, after) = (reading(14), reading(22));
    assert!(before <= after, "the readings {before} and {after}");
    let time = packet
        .nanos
        .checked_add_signed(tai_offset_s * 1_000_000_000);
    let time = time.expect("a time after 1970");
    before.saturating_sub(time).max(time.saturating_sub(after))
}
