//! The test packets of STAMP (RFC 8762, section 4), with the identifier of a session (RFC 8972,
//! section 3).

use super::{ErrorEstimate, Key, Timestamp};

/// Where the hash of an authenticated packet stands: it is over all that is before it.
const HASH_AT: usize = 96;

/// Whether packets are authenticated, which decides where their fields stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Without a hash: 44 octets.
    Unauthenticated,
    /// With one: 112 octets.
    Authenticated,
}

impl Mode {
    /// Octets of a test packet without extensions.
    pub const fn base(self) -> usize {
        match self {
            Self::Unauthenticated => 44,
            Self::Authenticated => 112,
        }
    }

    /// Where Timestamp stands, with the Error Estimate and the SSID behind it.
    const fn timestamp_at(self) -> usize {
        match self {
            Self::Unauthenticated => 4,
            Self::Authenticated => 16,
        }
    }

    /// Where the fields of a reply stand.
    const fn reply(self) -> ReplyFields {
        match self {
            Self::Unauthenticated => ReplyFields {
                received: 16,
                sender_sequence: 24,
                sender_timestamp: 28,
                sender_error: 36,
                ttl: 40,
            },
            Self::Authenticated => ReplyFields {
                received: 32,
                sender_sequence: 48,
                sender_timestamp: 64,
                sender_error: 72,
                ttl: 80,
            },
        }
    }
}

struct ReplyFields {
    received: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_error: usize,
    ttl: usize,
}

/// What a session-sender sends (RFC 8762, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of the session, from 0.
    pub sequence: u32,
    /// When it left: T1.
    pub timestamp: Timestamp,
    /// Of the sender's clock.
    pub error: ErrorEstimate,
    /// The session; 0 is none.
    pub ssid: u16,
}

/// What a session-reflector answers (RFC 8762, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of the replies of the session, from 0; without a state per session, that of the request.
    pub sequence: u32,
    /// When the reply left: T3.
    pub timestamp: Timestamp,
    /// Of the reflector's clock: of both its times.
    pub error: ErrorEstimate,
    /// As in the request.
    pub ssid: u16,
    /// When the request arrived: T2.
    pub received: Timestamp,
    /// As in the request.
    pub sender_sequence: u32,
    /// As in the request: T1.
    pub sender_timestamp: Timestamp,
    /// As in the request, bit for bit.
    pub sender_error: u16,
    /// Time to live, or the hop limit, of the request when it arrived.
    pub sender_ttl: u8,
}

/// Why a payload is no test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is shorter than the test packets of that mode.
    Short,
    /// The multiplier of an Error Estimate is 0, which must not be (RFC 4656, section 4.1.2).
    ErrorEstimate,
}

impl Request {
    /// Reads the beginning of a UDP payload.
    ///
    /// # Errors
    /// If it is none of that mode.
    pub fn parse(payload: &[u8], mode: Mode) -> Result<Self, Malformed> {
        let payload = base(payload, mode)?;
        let at = mode.timestamp_at();
        Ok(Self {
            sequence: u32::from_be_bytes(bytes(payload, 0)),
            timestamp: Timestamp(u64::from_be_bytes(bytes(payload, at))),
            error: error(payload, at + 8)?,
            ssid: u16::from_be_bytes(bytes(payload, at + 10)),
        })
    }

    /// Writes it to the beginning of `packet`, which has [`Mode::base`] octets at least; what is
    /// not a field of it there becomes 0. An authenticated one is signed by [`sign`].
    pub fn write(&self, mode: Mode, packet: &mut [u8]) {
        let at = mode.timestamp_at();
        packet[..mode.base()].fill(0);
        put(packet, 0, &self.sequence.to_be_bytes());
        put(packet, at, &self.timestamp.0.to_be_bytes());
        put(packet, at + 8, &self.error.to_bits().to_be_bytes());
        put(packet, at + 10, &self.ssid.to_be_bytes());
    }
}

impl Reply {
    /// Whether a payload is a reply, and no request: its fields that a request has not are all
    /// there, and what must be zero between them is. Padding of chance looks so once in 2^40.
    pub fn is_one(payload: &[u8], mode: Mode) -> bool {
        let fields = mode.reply();
        let Ok(reply) = Self::parse(payload, mode) else {
            return false;
        };
        let times = [reply.received, reply.sender_timestamp];
        let between = fields.sender_error + 2..fields.ttl;
        let behind = fields.ttl + 1..fields.ttl + 4;
        let zeros = [between, behind].into_iter().flatten();
        !times.contains(&Timestamp::NONE)
            && ErrorEstimate::from_bits(reply.sender_error).is_some()
            && reply.sender_ttl > 0
            && zeros.into_iter().all(|at| payload[at] == 0)
    }

    /// Reads the beginning of a UDP payload.
    ///
    /// # Errors
    /// If it is none of that mode.
    pub fn parse(payload: &[u8], mode: Mode) -> Result<Self, Malformed> {
        let payload = base(payload, mode)?;
        let (at, fields) = (mode.timestamp_at(), mode.reply());
        let time = |at| Timestamp(u64::from_be_bytes(bytes(payload, at)));
        Ok(Self {
            sequence: u32::from_be_bytes(bytes(payload, 0)),
            timestamp: time(at),
            error: error(payload, at + 8)?,
            ssid: u16::from_be_bytes(bytes(payload, at + 10)),
            received: time(fields.received),
            sender_sequence: u32::from_be_bytes(bytes(payload, fields.sender_sequence)),
            sender_timestamp: time(fields.sender_timestamp),
            sender_error: u16::from_be_bytes(bytes(payload, fields.sender_error)),
            sender_ttl: payload[fields.ttl],
        })
    }

    /// Writes it to the beginning of `packet`, as [`Request::write`] does.
    pub fn write(&self, mode: Mode, packet: &mut [u8]) {
        let request = Request {
            sequence: self.sequence,
            timestamp: self.timestamp,
            error: self.error,
            ssid: self.ssid,
        };
        request.write(mode, packet);
        let fields = mode.reply();
        put(packet, fields.received, &self.received.0.to_be_bytes());
        let sender_sequence = self.sender_sequence.to_be_bytes();
        put(packet, fields.sender_sequence, &sender_sequence);
        let sender_timestamp = self.sender_timestamp.0.to_be_bytes();
        put(packet, fields.sender_timestamp, &sender_timestamp);
        put(
            packet,
            fields.sender_error,
            &self.sender_error.to_be_bytes(),
        );
        packet[fields.ttl] = self.sender_ttl;
    }
}

/// Signs an authenticated packet, whose fields are all written. Extensions have a hash of their
/// own.
pub fn sign(packet: &mut [u8], key: &Key) {
    let hash = key.hash(&[&packet[..HASH_AT]]);
    put(packet, HASH_AT, &hash);
}

/// Whether an authenticated packet is signed by that key; a shorter one is not.
pub fn authenticates(packet: &[u8], key: &Key) -> bool {
    let parts = packet.split_at_checked(HASH_AT);
    let hash =
        parts.and_then(|(signed, rest)| Some((signed, rest.first_chunk::<{ Key::HASH }>()?)));
    hash.is_some_and(|(signed, hash)| key.verifies(&[signed], hash))
}

fn base(payload: &[u8], mode: Mode) -> Result<&[u8], Malformed> {
    payload.get(..mode.base()).ok_or(Malformed::Short)
}

fn error(payload: &[u8], at: usize) -> Result<ErrorEstimate, Malformed> {
    let bits = u16::from_be_bytes(bytes(payload, at));
    ErrorEstimate::from_bits(bits).ok_or(Malformed::ErrorEstimate)
}

/// Bytes of a packet whose length is checked.
pub(super) fn bytes<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    *packet[at..].first_chunk().expect("the length is checked")
}

pub(super) fn put(packet: &mut [u8], at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::TimeFormat;

    const MODES: [Mode; 2] = [Mode::Unauthenticated, Mode::Authenticated];

    fn reply() -> Reply {
        Reply {
            sequence: 0x0102_0304,
            timestamp: Timestamp(0x1112_1314_1516_1718),
            error: ErrorEstimate::covering(1_000, true, TimeFormat::Ntp),
            ssid: 0x2122,
            received: Timestamp(0x3132_3334_3536_3738),
            sender_sequence: 0x4142_4344,
            sender_timestamp: Timestamp(0x5152_5354_5556_5758),
            sender_error: 0x6162,
            sender_ttl: 0x71,
        }
    }

    /// RFC 8762, figures 4 and 6, octet by octet, with the SSID of RFC 8972.
    #[test]
    fn fields_stand_where_the_rfc_has_them() {
        let mut packet = [0xff; 112];
        reply().write(Mode::Unauthenticated, &mut packet[..44]);
        let expected = [
            &[1, 2, 3, 4][..],
            &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            &[0x85, 135, 0x21, 0x22],
            &[0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38],
            &[0x41, 0x42, 0x43, 0x44],
            &[0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58],
            &[0x61, 0x62, 0, 0, 0x71, 0, 0, 0],
        ];
        assert_eq!(packet[..44], expected.concat());
        reply().write(Mode::Authenticated, &mut packet);
        let expected = [
            &[1, 2, 3, 4][..],
            &[0; 12],
            &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18],
            &[0x85, 135, 0x21, 0x22, 0, 0, 0, 0],
            &[0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38],
            &[0; 8],
            &[0x41, 0x42, 0x43, 0x44],
            &[0; 12],
            &[0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58],
            &[0x61, 0x62, 0, 0, 0, 0, 0, 0],
            &[0x71],
            &[0; 15],
        ];
        assert_eq!(packet[..96], expected.concat());
    }

    #[test]
    fn what_is_signed_is_known_and_what_was_changed_is_not() {
        let key = Key::new(b"a key of 16 octs").unwrap();
        let mut packet = [0; 120];
        reply().write(Mode::Authenticated, &mut packet);
        sign(&mut packet, &key);
        assert!(authenticates(&packet, &key));
        assert!(!authenticates(&packet[..111], &key));
        assert!(!authenticates(&packet, &Key::new(&[7; 16]).unwrap()));
        for at in 0..112 {
            packet[at] ^= 1;
            assert!(!authenticates(&packet, &key), "octet {at}");
            packet[at] ^= 1;
        }
        // Extensions are not in it.
        packet[112] ^= 1;
        assert!(authenticates(&packet, &key));
    }

    #[test]
    fn what_is_short_or_corrupt_is_no_packet() {
        for mode in MODES {
            let mut packet = [0; 112];
            reply().write(mode, &mut packet);
            assert_eq!(Reply::parse(&packet, mode), Ok(reply()));
            let short = &packet[..mode.base() - 1];
            assert_eq!(Reply::parse(short, mode), Err(Malformed::Short));
            packet[mode.timestamp_at() + 9] = 0;
            let corrupt = Request::parse(&packet, mode);
            assert_eq!(corrupt, Err(Malformed::ErrorEstimate));
        }
    }

    proptest! {
        #[test]
        fn any_payload_is_read(payload in proptest::collection::vec(any::<u8>(), 0..130)) {
            for mode in MODES {
                let request = Request::parse(&payload, mode);
                prop_assert_eq!(request.is_ok(), Reply::parse(&payload, mode).is_ok());
                if let Ok(request) = request {
                    let mut packet = [0xee; 112];
                    request.write(mode, &mut packet);
                    prop_assert_eq!(Request::parse(&packet, mode), Ok(request));
                }
            }
        }
    }
}
