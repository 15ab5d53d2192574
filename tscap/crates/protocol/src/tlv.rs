//! What may follow a test packet: extensions of type, length and value (RFC 8972, section 4).

use super::packet::{bytes, put};
use super::{Key, Timestamp};

/// Octets of flags, type and length.
const HEADER: usize = 4;
/// The reflector does not understand the type; a sender sets it.
const UNRECOGNISED: u8 = 0x80;
/// The length is none that it can have.
const MALFORMED: u8 = 0x40;
/// The hash of the extensions is not theirs.
const NOT_INTACT: u8 = 0x20;

const RESERVED: u8 = 0;
const EXTRA_PADDING: u8 = 1;
const TIMESTAMP_INFORMATION: u8 = 3;
const FOLLOW_UP: u8 = 7;
const HMAC: u8 = 8;

const TIMESTAMP_INFORMATION_VALUE: usize = 4;
const FOLLOW_UP_VALUE: usize = 16;

/// What a clock follows (RFC 8972, table 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncSource {
    /// NTP.
    Ntp = 1,
    /// PTP.
    Ptp = 2,
    /// Nothing: it runs free.
    Local = 5,
}

/// How a timestamp was taken (RFC 8972, table 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// With the help of hardware.
    Hardware = 1,
    /// By software of the host.
    Software = 2,
}

/// One extension of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// As they stand in the packet.
    pub flags: u8,
    /// STAMP TLV Type (RFC 8972, section 5.1).
    pub kind: u8,
    /// What follows the four octets of flags, type and length, without padding.
    pub value: &'a [u8],
}

/// The extensions of a packet, in their order, up to one that is longer than what is left.
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
}

/// Of the reply before, where a reflector keeps a state per session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// Sequence number of that reply.
    pub sequence: u32,
    /// When it left, read behind the place where T3 was written.
    pub timestamp: Timestamp,
    /// A [`Method`]; 0 where there is nothing to tell.
    pub method: u8,
}

/// What a reflector tells in extensions.
#[derive(Clone, Copy, Debug)]
pub struct Reflection {
    /// What its clock follows.
    pub source: SyncSource,
    /// The latest reply but this one; `None` without a state per session, or of the first reply.
    pub follow_up: Option<FollowUp>,
}

/// What became of the extensions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlvOutcome {
    /// There are none, or each was read.
    Read,
    /// One has a length that it cannot have: those behind it were copied.
    Malformed,
    /// The hash is missing, at a place where it must not be, or none of this key: all were copied.
    NotIntact,
}

impl<'a> Tlvs<'a> {
    /// Of what follows the base of a packet.
    pub fn of(extensions: &'a [u8]) -> Self {
        Self { rest: extensions }
    }

    /// What the reflector has told of its reply before, if it has.
    pub fn follow_up(mut self) -> Option<FollowUp> {
        let reported = self.find(|it| it.kind == FOLLOW_UP && it.flags == 0)?;
        let value: &[u8; FOLLOW_UP_VALUE] = reported.value.first_chunk()?;
        let follow_up = FollowUp {
            sequence: u32::from_be_bytes(bytes(value, 0)),
            timestamp: Timestamp(u64::from_be_bytes(bytes(value, 4))),
            method: value[12],
        };
        (follow_up.timestamp != Timestamp::NONE).then_some(follow_up)
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Tlv<'a>;

    fn next(&mut self) -> Option<Tlv<'a>> {
        let header: &[u8; HEADER] = self.rest.first_chunk()?;
        let end = HEADER + usize::from(u16::from_be_bytes([header[2], header[3]]));
        let tlv = Tlv {
            flags: header[0],
            kind: header[1],
            value: self.rest.get(HEADER..end)?,
        };
        self.rest = &self.rest[end..];
        Some(tlv)
    }
}

/// The extensions of a request of a session-sender: that a reflector may tell about its reply
/// before, if there is room for that, and padding up to the end. Whoever signs them leaves room
/// for [`append_hmac`]. Padding is `pad`, over and over (RFC 8972, section 4.1: SHOULD be
/// pseudorandom).
pub fn request_tlvs(extensions: &mut [u8], pad: &[u8; 8]) {
    let mut at = 0;
    if extensions.len() >= HEADER + FOLLOW_UP_VALUE {
        header(&mut extensions[at..], FOLLOW_UP, FOLLOW_UP_VALUE);
        extensions[at + HEADER..at + HEADER + FOLLOW_UP_VALUE].fill(0);
        at += HEADER + FOLLOW_UP_VALUE;
    }
    let rest = &mut extensions[at..];
    if rest.len() >= HEADER {
        let length = rest.len() - HEADER;
        header(rest, EXTRA_PADDING, length);
        let value = rest[HEADER..].iter_mut();
        value
            .zip(pad.iter().cycle())
            .for_each(|(to, from)| *to = *from);
    } else {
        rest.fill(0);
    }
}

fn header(tlv: &mut [u8], kind: u8, length: usize) {
    // A datagram has less than 64 kB.
    let [high, low] = (length as u16).to_be_bytes();
    put(tlv, 0, &[UNRECOGNISED, kind, high, low]);
}

/// Whether the extensions of a request ask when the reply before left.
pub fn asks_to_follow_up(extensions: &[u8]) -> bool {
    Tlvs::of(extensions).any(|it| it.kind == FOLLOW_UP)
}

/// Octets of the extension that signs the others.
pub(crate) const HMAC_OCTETS: usize = HEADER + Key::HASH;

/// Writes the hash of a request's `extensions` to their last 20 octets (RFC 8972, section 4.8);
/// it is over the packet's sequence number too.
pub fn append_hmac(sequence: u32, extensions: &mut [u8], key: &Key) {
    let Some(at) = extensions.len().checked_sub(HMAC_OCTETS) else {
        return;
    };
    let (signed, hmac) = extensions.split_at_mut(at);
    header(hmac, HMAC, Key::HASH);
    put(hmac, HEADER, &key.hash(&[&sequence.to_be_bytes(), signed]));
}

/// Turns the extensions of a request, copied to its reply, into the reply's (RFC 8972, section
/// 4). `sequences` are those of the request and of the reply. With a `key` those of an
/// authenticated packet must be signed; without one nothing that is signed can be verified.
pub fn reflect(
    extensions: &mut [u8],
    sequences: [u32; 2],
    reflection: &Reflection,
    key: Option<&Key>,
) -> TlvOutcome {
    let found = Found::of(extensions);
    if !is_intact(extensions, sequences[0], &found, key) {
        for at in &found.starts {
            extensions[*at] |= NOT_INTACT;
        }
        return TlvOutcome::NotIntact;
    }
    for at in &found.starts {
        let kind = extensions[at + 1];
        if kind == RESERVED {
            // What pads a packet of TWAMP is no extension: it goes back as it came.
            break;
        }
        let length = usize::from(u16::from_be_bytes([extensions[at + 2], extensions[at + 3]]));
        let value = at + HEADER..(at + HEADER + length).min(extensions.len());
        let takes = match kind {
            TIMESTAMP_INFORMATION => length >= TIMESTAMP_INFORMATION_VALUE,
            FOLLOW_UP => length == FOLLOW_UP_VALUE,
            HMAC => length == Key::HASH,
            _ => true,
        };
        if !takes || value.len() < length {
            extensions[*at] = MALFORMED;
            return TlvOutcome::Malformed;
        }
        let value = &mut extensions[value];
        let flags = match kind {
            EXTRA_PADDING => 0,
            TIMESTAMP_INFORMATION => {
                let (source, method) = (reflection.source as u8, Method::Software as u8);
                put(value, 0, &[source, method, source, method]);
                0
            }
            FOLLOW_UP => {
                let reported = reflection.follow_up.unwrap_or_default();
                put(value, 0, &reported.sequence.to_be_bytes());
                put(value, 4, &reported.timestamp.0.to_be_bytes());
                put(value, 12, &[reported.method, 0, 0, 0]);
                0
            }
            HMAC => 0,
            _ => UNRECOGNISED,
        };
        extensions[*at] = flags;
    }
    if let (Some(at), Some(key)) = (found.hmac, key) {
        let (signed, hmac) = extensions.split_at_mut(at);
        put(
            hmac,
            HEADER,
            &key.hash(&[&sequences[1].to_be_bytes(), signed]),
        );
    }
    TlvOutcome::Read
}

struct Found {
    /// Also of one that is longer than what is left.
    starts: Vec<usize>,
    hmac: Option<usize>,
    /// Whether something but one padding follows the hash, or there are two.
    is_misplaced: bool,
    /// Whether they are one padding alone, which needs no hash.
    is_padding: bool,
}

impl Found {
    fn of(extensions: &[u8]) -> Self {
        let mut starts = Vec::new();
        let (mut hmac, mut behind) = (None, 0);
        let (mut is_misplaced, mut is_padding) = (false, true);
        let mut at = 0;
        while let Some(header) = extensions.get(at..at + HEADER) {
            let kind = header[1];
            if hmac.is_some() {
                behind += 1;
                is_misplaced |= kind != EXTRA_PADDING || behind > 1;
            } else if kind == HMAC {
                hmac = Some(at);
            }
            is_padding &= kind == EXTRA_PADDING && starts.is_empty();
            starts.push(at);
            at += HEADER + usize::from(u16::from_be_bytes([header[2], header[3]]));
        }
        Self {
            starts,
            hmac,
            is_misplaced,
            is_padding,
        }
    }
}

fn is_intact(extensions: &[u8], sequence: u32, found: &Found, key: Option<&Key>) -> bool {
    if found.is_misplaced {
        return false;
    }
    let Some(at) = found.hmac else {
        return key.is_none() || found.is_padding;
    };
    let (signed, hmac) = extensions.split_at(at);
    let length = u16::from_be_bytes([hmac[2], hmac[3]]);
    let hash = hmac.get(HEADER..HEADER + Key::HASH);
    let hash = hash.filter(|_| usize::from(length) == Key::HASH);
    hash.zip(key)
        .is_some_and(|(hash, key)| key.verifies(&[&sequence.to_be_bytes(), signed], hash))
}

/// Whether a reply's extensions are signed by that key; those of an authenticated packet must be.
#[cfg(test)]
fn are_signed(extensions: &[u8], sequence: u32, key: &Key) -> bool {
    is_intact(extensions, sequence, &Found::of(extensions), Some(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEQUENCES: [u32; 2] = [7, 3];

    fn key() -> Key {
        Key::new(b"a key of 16 octs").unwrap()
    }

    fn reflection() -> Reflection {
        Reflection {
            source: SyncSource::Ntp,
            follow_up: Some(FollowUp {
                sequence: 2,
                timestamp: Timestamp(0x0102_0304_0506_0708),
                method: Method::Software as u8,
            }),
        }
    }

    fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
        let length = (value.len() as u16).to_be_bytes();
        [&[UNRECOGNISED, kind, length[0], length[1]], value].concat()
    }

    fn reflected(mut extensions: Vec<u8>, key: Option<&Key>) -> (Vec<u8>, TlvOutcome) {
        let outcome = reflect(&mut extensions, SEQUENCES, &reflection(), key);
        (extensions, outcome)
    }

    #[test]
    fn each_type_is_answered_as_the_rfc_says() {
        let sent = [
            tlv(TIMESTAMP_INFORMATION, &[0; 4]),
            tlv(FOLLOW_UP, &[0; 16]),
            tlv(4, &[9; 4]),
            tlv(EXTRA_PADDING, &[5; 6]),
        ];
        let (reply, outcome) = reflected(sent.concat(), None);
        assert_eq!(outcome, TlvOutcome::Read);
        let found: Vec<_> = Tlvs::of(&reply).collect();
        assert_eq!((found[0].flags, found[0].value), (0, &[1, 2, 1, 2][..]));
        assert_eq!(found[1].flags, 0);
        // Class of Service is not understood, and goes back as it came.
        assert_eq!(
            (found[2].flags, found[2].value),
            (UNRECOGNISED, &[9; 4][..])
        );
        assert_eq!((found[3].flags, found[3].value), (0, &[5; 6][..]));
        assert_eq!(Tlvs::of(&reply).follow_up(), reflection().follow_up);
    }

    #[test]
    fn without_a_state_nothing_follows_up() {
        let mut reply = tlv(FOLLOW_UP, &[0xff; 16]);
        let reflection = Reflection {
            follow_up: None,
            ..reflection()
        };
        reflect(&mut reply, SEQUENCES, &reflection, None);
        assert_eq!(reply[HEADER..], [0; 16]);
        assert_eq!(Tlvs::of(&reply).follow_up(), None);
    }

    #[test]
    fn one_of_a_wrong_length_ends_the_work() {
        let behind = tlv(TIMESTAMP_INFORMATION, &[0; 4]);
        for wrong in [
            tlv(FOLLOW_UP, &[0; 15]),
            tlv(TIMESTAMP_INFORMATION, &[0; 3]),
        ] {
            let (reply, outcome) = reflected([wrong, behind.clone()].concat(), None);
            assert_eq!(outcome, TlvOutcome::Malformed);
            assert_eq!(reply[0], MALFORMED);
            assert!(reply.ends_with(&behind), "copied as it came");
        }
        let mut long = tlv(4, &[0; 4]);
        long[3] = 5;
        let (reply, outcome) = reflected(long, None);
        assert_eq!((outcome, reply[0]), (TlvOutcome::Malformed, MALFORMED));
    }

    #[test]
    fn a_signed_reply_is_signed_anew() {
        let key = key();
        let mut sent = [tlv(FOLLOW_UP, &[0; 16]), vec![0; HMAC_OCTETS]].concat();
        append_hmac(SEQUENCES[0], &mut sent, &key);
        let (reply, outcome) = reflected(sent.clone(), Some(&key));
        assert_eq!(outcome, TlvOutcome::Read);
        assert!(are_signed(&reply, SEQUENCES[1], &key));
        assert!(
            !are_signed(&reply, SEQUENCES[0], &key),
            "of the reply's sequence number"
        );
        // Padding behind the hash is not in it.
        let padded = [sent, tlv(EXTRA_PADDING, &[1; 8])].concat();
        assert_eq!(reflected(padded, Some(&key)).1, TlvOutcome::Read);
    }

    #[test]
    fn what_is_not_intact_goes_back_as_it_came() {
        let key = key();
        let mut signed = [tlv(FOLLOW_UP, &[0; 16]), vec![0; HMAC_OCTETS]].concat();
        append_hmac(SEQUENCES[0], &mut signed, &key);
        let mut changed = signed.clone();
        changed[HEADER] ^= 1;
        let behind = [signed.clone(), tlv(4, &[0; 4])].concat();
        let unsigned = tlv(FOLLOW_UP, &[0; 16]);
        for (sent, key) in [
            (changed, Some(&key)),
            (behind, Some(&key)),
            (unsigned, Some(&key)),
            // Nobody can verify it.
            (signed, None),
        ] {
            let (reply, outcome) = reflected(sent.clone(), key);
            assert_eq!(outcome, TlvOutcome::NotIntact, "{sent:?}");
            for (at, octet) in reply.iter().enumerate() {
                let was = sent[at];
                assert!(*octet == was || *octet == was | NOT_INTACT, "octet {at}");
            }
            assert!(Tlvs::of(&reply).all(|it| it.flags & NOT_INTACT != 0));
        }
        // A padding alone needs no hash.
        let padding = tlv(EXTRA_PADDING, &[1; 40]);
        assert_eq!(reflected(padding, Some(&key)).1, TlvOutcome::Read);
    }

    #[test]
    fn what_pads_a_packet_of_twamp_goes_back_as_it_came() {
        let (reply, outcome) = reflected(vec![0; 30], None);
        assert_eq!((reply, outcome), (vec![0; 30], TlvOutcome::Read));
    }

    #[test]
    fn a_request_asks_and_pads() {
        for length in [0, 3, 4, 19, 20, 23, 24, 100] {
            let mut extensions = vec![0xee; length];
            request_tlvs(&mut extensions, &[1, 2, 3, 4, 5, 6, 7, 8]);
            let kinds: Vec<u8> = Tlvs::of(&extensions).map(|it| it.kind).collect();
            let asks = length >= 20;
            let pads = if asks { length >= 24 } else { length >= 4 };
            let expected = [(asks, FOLLOW_UP), (pads, EXTRA_PADDING)];
            let expected = expected.iter().filter(|it| it.0).map(|it| it.1);
            assert_eq!(kinds, expected.collect::<Vec<_>>(), "{length}");
            assert!(Tlvs::of(&extensions).all(|it| it.flags == UNRECOGNISED));
        }
    }

    proptest! {
        #[test]
        fn anything_is_reflected_in_its_length(
            extensions in proptest::collection::vec(any::<u8>(), 0..200),
            has_key in any::<bool>(),
        ) {
            let key = key();
            let (reply, _) = reflected(extensions.clone(), has_key.then_some(&key));
            prop_assert_eq!(reply.len(), extensions.len());
            let _ = Tlvs::of(&reply).follow_up();
        }
    }
}
