//! Test packets of STAMP as programs in user space write them, and the times that they have
//! when they arrive.

use tscap_clock::RealNs;
use tscap_protocol::{ErrorEstimate, Mode, Reply, TimeFormat, Timestamp};

/// Octets of an unauthenticated packet before the time, and behind the Error Estimate.
const TIME: usize = 4;
const BEHIND: usize = 14;

/// A reply as a session-reflector in user space writes it, with times long past; of so many
/// octets.
pub fn reply(sequence: u32, octets: usize, format: TimeFormat) -> Vec<u8> {
    let now_s = RealNs::now().0 / 1_000_000_000;
    let past = Timestamp::of(RealNs((now_s - 5) * 1_000_000_000), format, 0);
    let reply = Reply {
        sequence,
        timestamp: past,
        error: ErrorEstimate::covering(1, false, format),
        ssid: 0x5a5a,
        received: past,
        sender_sequence: sequence,
        sender_timestamp: past,
        sender_error: 0x0001,
        sender_ttl: 255,
    };
    let mut packet = vec![0xa5; octets.max(Mode::Unauthenticated.base())];
    reply.write(Mode::Unauthenticated, &mut packet);
    packet.truncate(octets);
    packet
}

/// A packet, and the time in which it was sent.
#[derive(Debug)]
pub struct Sent {
    /// Its UDP payload, as its program has written it.
    pub payload: Vec<u8>,
    /// Before it was sent.
    pub before: RealNs,
    /// After that.
    pub after: RealNs,
}

impl Sent {
    /// Sends it, in whatever way.
    pub fn by(payload: &[u8], send: impl FnOnce()) -> Self {
        let before = RealNs::now();
        send();
        Self {
            payload: payload.to_vec(),
            before,
            after: RealNs::now(),
        }
    }

    /// Panics unless `arrived` is that packet with a time at which it was sent, within its Error
    /// Estimate, and the same otherwise. Gives the estimate.
    #[track_caller]
    pub fn has_its_time(&self, arrived: &[u8]) -> ErrorEstimate {
        let Self {
            payload,
            before,
            after,
        } = self;
        assert_eq!(arrived.len(), payload.len());
        assert_eq!(arrived[..TIME], payload[..TIME]);
        assert_eq!(arrived[BEHIND..], payload[BEHIND..]);
        let bits = u16::from_be_bytes([arrived[12], arrived[13]]);
        let error = ErrorEstimate::from_bits(bits).expect("an Error Estimate");
        let theirs = ErrorEstimate::from_bits(u16::from_be_bytes([payload[12], payload[13]]));
        assert_eq!(Some(error.format), theirs.map(|it| it.format));
        let time = arrived[TIME..].first_chunk().expect("eight octets");
        let time = Timestamp(u64::from_be_bytes(*time));
        let time = time.to_real(error.format, *before, 0);
        let bound_ns = error.bound_ns();
        let is_within = (before.0 - bound_ns..=after.0 + bound_ns).contains(&time.0);
        assert!(
            is_within,
            "{time:?} ±{bound_ns} ns in {before:?}..{after:?}"
        );
        error
    }
}
