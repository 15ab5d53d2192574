//! The header of an NTP packet (RFC 5905, section 7.3).

use serde::{Deserialize, Serialize};

use tscap_protocol::NtpTime;

/// Bytes of a header; extension fields and a MAC may follow.
const LENGTH: usize = 48;
/// The version that requests have.
const VERSION: u8 = 4;
/// Mode of a request, and of its reply.
pub(super) const CLIENT: u8 = 3;
pub(super) const SERVER: u8 = 4;
/// The highest stratum of a synchronised server.
const MOST_STRATUM: u8 = 15;

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// Fewer than 48 bytes.
    Short,
    /// Not a whole number of 32-bit words.
    Ragged,
}

/// The leap indicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leap {
    /// No leap second is due.
    None,
    /// The last minute of the day has 61 seconds.
    Insert,
    /// The last minute of the day has 59 seconds.
    Delete,
    /// The clock is not synchronised.
    Unsynchronised,
}

/// What a kiss-o'-death says: four ASCII characters in the reference identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KissCode(pub [u8; 4]);

impl KissCode {
    /// Access denied: a client must not send any more.
    pub const DENY: Self = Self(*b"DENY");
    /// The same, by local policy.
    pub const RSTR: Self = Self(*b"RSTR");
    /// Asked too often: a client must ask less.
    pub const RATE: Self = Self(*b"RATE");
}

impl std::fmt::Display for KissCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .iter()
            .filter(|byte| **byte != 0)
            .try_for_each(|byte| write!(f, "{}", byte.escape_ascii()))
    }
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Leap indicator.
    pub leap: Leap,
    /// 1 to 7; 4 now.
    pub version: u8,
    /// 3: a request of a client; 4: a server's reply.
    pub mode: u8,
    /// 0: a kiss; 1: has a clock of its own; 16 and more: not synchronised.
    pub stratum: u8,
    /// How exactly the sender reads its clock, ns.
    pub precision_ns: u64,
    /// There and back to the primary server, ns.
    pub root_delay_ns: u64,
    /// Error that has added up from there, ns.
    pub root_dispersion_ns: u64,
    /// Whom the sender follows, or what a kiss says.
    pub reference_id: [u8; 4],
    /// When the sender's clock was corrected last.
    pub reference: NtpTime,
    /// The transmit time of the request; in the interleaved mode its receive time, and of a
    /// request in that mode the receive time of the reply before.
    pub origin: NtpTime,
    /// When the request arrived: Tb.
    pub receive: NtpTime,
    /// When this was sent: Te; in the interleaved mode when the reply before was.
    pub transmit: NtpTime,
}

impl Packet {
    /// Reads a UDP payload. What follows the header is not looked at: nothing is
    /// authenticated.
    ///
    /// # Errors
    /// If it has no header, or no length that a packet can have.
    pub fn parse(payload: &[u8]) -> Result<Self, PacketError> {
        let header: &[u8; LENGTH] = payload.first_chunk().ok_or(PacketError::Short)?;
        if !payload.len().is_multiple_of(4) {
            return Err(PacketError::Ragged);
        }
        let word = |at: usize| u32::from_be_bytes(bytes(header, at));
        let time = |at: usize| NtpTime(u64::from_be_bytes(bytes(header, at)));
        Ok(Self {
            leap: match header[0] >> 6 {
                0 => Leap::None,
                1 => Leap::Insert,
                2 => Leap::Delete,
                _ => Leap::Unsynchronised,
            },
            version: header[0] >> 3 & 7,
            mode: header[0] & 7,
            stratum: header[1],
            precision_ns: power_ns(header[3].cast_signed()),
            root_delay_ns: short_ns(word(4)),
            root_dispersion_ns: short_ns(word(8)),
            reference_id: bytes(header, 12),
            reference: time(16),
            origin: time(24),
            receive: time(32),
            transmit: time(40),
        })
    }

    /// Whether the sender says that its clock follows a primary server's.
    pub fn is_synchronised(&self) -> bool {
        self.leap != Leap::Unsynchronised && (1..=MOST_STRATUM).contains(&self.stratum)
    }

    /// The greatest error of the sender's clock against UTC when it sent this, by its own
    /// account, ns: half of the root delay, and the root dispersion (RFC 5905, section 11.2.3;
    /// the way to us is not in it).
    pub fn root_distance_ns(&self) -> u64 {
        self.root_delay_ns.div_ceil(2) + self.root_dispersion_ns
    }
}

/// What a request in the interleaved mode says (RFC 9769, section 2): the server may tell when
/// its reply before left, which it did not know until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interleaved {
    /// The receive time of that reply.
    pub before: NtpTime,
    /// The origin of a reply in this mode: a random number, not that of the basic mode.
    pub cookie: NtpTime,
}

/// A request whose transmit time is `cookie`: a random number, so that only who has seen the
/// request can answer it, and it tells nothing of the client's clock.
pub fn request(cookie: NtpTime, interleaved: Option<Interleaved>) -> [u8; LENGTH] {
    let mut packet = [0; LENGTH];
    packet[0] = VERSION << 3 | CLIENT;
    if let Some(Interleaved { before, cookie }) = interleaved {
        packet[24..32].copy_from_slice(&before.0.to_be_bytes());
        packet[32..40].copy_from_slice(&cookie.0.to_be_bytes());
    }
    packet[40..].copy_from_slice(&cookie.0.to_be_bytes());
    packet
}

fn bytes<const N: usize>(header: &[u8; LENGTH], at: usize) -> [u8; N] {
    let bytes = header[at..].first_chunk();
    *bytes.expect("every field is inside of the header")
}

const NS_PER_S: u64 = 1_000_000_000;

/// A short format (16 bits of seconds, 16 of fraction), ns, rounded up.
fn short_ns(short: u32) -> u64 {
    (u64::from(short) * NS_PER_S).div_ceil(1 << 16)
}

/// 2^`exponent` s, ns, rounded up: the precision of a clock. More than 64 s counts as so much.
fn power_ns(exponent: i8) -> u64 {
    match exponent {
        0.. => NS_PER_S << exponent.min(6),
        _ => NS_PER_S.div_ceil(1 << exponent.unsigned_abs().min(32)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::reply;
    use super::*;

    #[test]
    fn short_formats_are_rounded_up() {
        assert_eq!(short_ns(0x0001_0000), NS_PER_S);
        assert_eq!(short_ns(1), 15_259);
        assert_eq!(short_ns(u32::MAX), 65_535_999_984_742);
        assert_eq!((power_ns(0), power_ns(1)), (NS_PER_S, 2 * NS_PER_S));
        assert_eq!((power_ns(-20), power_ns(-32), power_ns(-128)), (954, 1, 1));
        assert_eq!(power_ns(127), 64 * NS_PER_S);
    }

    #[test]
    fn a_request_says_nothing_but_its_cookie() {
        let bytes = request(NtpTime(0x0123_4567_89ab_cdef), None);
        assert_eq!(bytes[0], 0x23);
        assert!(bytes[1..40].iter().all(|byte| *byte == 0));
        let read = Packet::parse(&bytes).unwrap();
        assert_eq!((read.version, read.mode, read.leap), (4, 3, Leap::None));
        assert_eq!(read.transmit, NtpTime(0x0123_4567_89ab_cdef));
    }

    #[test]
    fn an_interleaved_request_names_the_reply_before_and_a_second_cookie() {
        let [before, cookie, transmit] = [1, 2, 3].map(NtpTime);
        let bytes = request(transmit, Some(Interleaved { before, cookie }));
        assert!(bytes[1..24].iter().all(|byte| *byte == 0));
        let read = Packet::parse(&bytes).unwrap();
        let times = [read.origin, read.receive, read.transmit];
        assert_eq!((read.mode, times), (CLIENT, [before, cookie, transmit]));
    }

    /// A reply of a public server, as `tcpdump -x` shows it: stratum 2, precision 2^-25 s.
    #[test]
    fn a_reply_is_read_by_the_layout_of_the_rfc() {
        let mut bytes = [0; 48];
        bytes[..4].copy_from_slice(&[0x24, 2, 6, 0xe7]);
        bytes[4..8].copy_from_slice(&[0, 0, 2, 0]);
        bytes[8..12].copy_from_slice(&[0, 0, 0, 0x80]);
        bytes[12..16].copy_from_slice(&[192, 0, 2, 1]);
        for (at, time) in [(16, 1u64), (24, 2), (32, 3), (40, 4)] {
            bytes[at..at + 8].copy_from_slice(&time.to_be_bytes());
        }
        let read = Packet::parse(&bytes).unwrap();
        assert_eq!(
            (read.leap, read.stratum, read.mode),
            (Leap::None, 2, SERVER)
        );
        assert_eq!((read.precision_ns, read.root_delay_ns), (30, 7_812_500));
        assert_eq!(read.root_distance_ns(), 3_906_250 + 1_953_125);
        assert_eq!(read.reference_id, [192, 0, 2, 1]);
        let times = [read.reference, read.origin, read.receive, read.transmit];
        assert_eq!(times, [1, 2, 3, 4].map(NtpTime));
        assert!(read.is_synchronised());
    }

    #[test]
    fn what_is_not_synchronised_says_so_in_one_of_two_ways() {
        let synchronised = |change: fn(&mut [u8; 48])| {
            let mut bytes = reply();
            change(&mut bytes);
            Packet::parse(&bytes).unwrap().is_synchronised()
        };
        assert!(synchronised(|_| {}));
        assert!(!synchronised(|it| it[0] |= 0xc0));
        assert!(!synchronised(|it| it[1] = 16));
        assert!(!synchronised(|it| it[1] = 0));
    }

    #[test]
    fn a_leap_second_is_told_two_ways() {
        for (bits, leap) in [(0x40, Leap::Insert), (0x80, Leap::Delete)] {
            let mut bytes = reply();
            bytes[0] |= bits;
            let read = Packet::parse(&bytes).unwrap();
            assert_eq!((read.leap, read.is_synchronised()), (leap, true));
        }
    }

    #[test]
    fn lengths_that_no_packet_has() {
        let bytes = [reply().to_vec(), vec![0; 24]].concat();
        for length in 0..bytes.len() {
            let expected = match length {
                0..48 => Err(PacketError::Short),
                _ if length % 4 > 0 => Err(PacketError::Ragged),
                _ => Ok(()),
            };
            assert_eq!(Packet::parse(&bytes[..length]).map(drop), expected);
        }
    }

    #[test]
    fn a_kiss_is_shown_as_text_that_can_do_no_harm() {
        assert_eq!(KissCode::DENY.to_string(), "DENY");
        assert_eq!(KissCode(*b"\x1b[2\0").to_string(), "\\x1b[2");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let read = Packet::parse(&bytes);
            prop_assert_eq!(read.is_ok(), bytes.len() >= 48 && bytes.len() % 4 == 0);
            if let Ok(packet) = read {
                let _ = (packet.root_distance_ns(), packet.is_synchronised());
            }
        }
    }
}
