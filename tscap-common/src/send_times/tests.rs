extern crate std;

use std::vec::Vec;

use super::*;

impl Bytes for &[u8] {
    fn words<const N: usize>(self, at: u32) -> Option<[u32; N]> {
        let mut words = [0; N];
        let bytes = self.get(at as usize..)?.get(..4 * N)?;
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Some(words)
    }
}

const PORT: u16 = 862;
const OTHER: u16 = 40_000;
const SEQUENCE: [u8; 4] = [0, 0, 0, 7];
const TIME: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 0x80, 10];
const WAS: Stamped = Stamped {
    sequence: 7,
    time: 0x0102_0304_0506_0708,
    error_estimate: 0x800a,
};

/// A payload of so many octets.
fn payload(octets: usize) -> Vec<u8> {
    let mut payload = [&SEQUENCE[..], &TIME].concat();
    payload.resize(octets, 0);
    payload
}

fn datagram(payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let halves = [PORT, OTHER, length, 0xbeef];
    let header = halves.map(u16::to_be_bytes).concat();
    [&header[..], payload].concat()
}

/// An Ethernet frame of that type.
fn frame(kind: u32, packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes()[2..], packet].concat()
}

fn tagged(tag: u32, frame: &[u8]) -> Vec<u8> {
    [
        &frame[..12],
        &tag.to_be_bytes()[2..],
        &[0, 100],
        &frame[12..],
    ]
    .concat()
}

fn v4(protocol: u32, fragment: u16, options: &[u8], body: &[u8]) -> Vec<u8> {
    let length = 20 + options.len();
    let mut header = std::vec![0x40 | (length / 4) as u8, 0, 0, 0, 0, 0];
    header.extend(fragment.to_be_bytes());
    header.extend([64, protocol as u8, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame(IPV4, &[&header, options, body].concat())
}

/// With these extension headers: each kind, and what is behind its first octet.
fn v6(headers: &[(u32, &[u8])], last: u32, body: &[u8]) -> Vec<u8> {
    let kinds = headers.iter().map(|it| it.0).chain([last]);
    let kinds: Vec<u8> = kinds.map(|kind| kind as u8).collect();
    let mut packet = std::vec![0x60, 0, 0, 0, 0, 0, kinds[0], 64];
    packet.extend([0xfd; 32]);
    for ((_, rest), next) in headers.iter().zip(&kinds[1..]) {
        packet.push(*next);
        packet.extend(*rest);
    }
    packet.extend(body);
    frame(IPV6, &packet)
}

/// Behind the first octet of an extension header of 8 and of 16 octets.
const SHORT: &[u8] = &[0, 0, 0, 0, 0, 0, 0];
const LONG: &[u8] = &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn packet(bytes: &[u8]) -> Packet<&[u8]> {
    Packet {
        bytes,
        length: bytes.len() as u32,
        is_forwarded: false,
        is_aggregate: false,
    }
}

/// Where the UDP header is, if there is a time behind it.
fn found(packet: Packet<&[u8]>, entry: u32) -> Result<(u32, Stamped), SendCount> {
    let udp = udp(packet.bytes).ok_or(SendCount::Other)?;
    if !has(entry, udp.source, udp.destination) {
        return Err(SendCount::Other);
    }
    Ok((udp.at, stamped(packet, udp)?))
}

fn outcome(bytes: &[u8]) -> SendCount {
    match found(packet(bytes), entry(PORT, FROM)) {
        Ok(_) => SendCount::Written,
        Err(count) => count,
    }
}

#[track_caller]
fn is_at(bytes: &[u8], udp: u32) {
    assert_eq!(found(packet(bytes), entry(PORT, FROM)), Ok((udp, WAS)));
}

#[test]
fn the_header_is_found_behind_tags_options_and_extensions() {
    let body = &datagram(&payload(44));
    let plain = v4(UDP, 0, &[], body);
    is_at(&plain, 34);
    // The bit that forbids fragments.
    is_at(&v4(UDP, 0x4000, &[], body), 34);
    is_at(&v4(UDP, 0, &[1; 40], body), 74);
    is_at(&tagged(VLAN, &plain), 38);
    let twice = tagged(PROVIDER_VLAN, &tagged(VLAN, &plain));
    is_at(&twice, 42);
    assert_eq!(outcome(&tagged(VLAN, &twice)), SendCount::Other);
    is_at(&v6(&[], UDP, body), 54);
    is_at(&tagged(VLAN, &v6(&[], UDP, body)), 58);
    is_at(&v6(&[(DESTINATION_OPTIONS, SHORT)], UDP, body), 62);
    let all = [
        (HOP_BY_HOP, SHORT),
        (DESTINATION_OPTIONS, LONG),
        (ROUTING, LONG),
        (DESTINATION_OPTIONS, SHORT),
    ];
    is_at(&v6(&all, UDP, body), 54 + 8 + 16 + 16 + 8);
    let too_many = [(DESTINATION_OPTIONS, SHORT); 6];
    is_at(&v6(&too_many[1..], UDP, body), 54 + 40);
    assert_eq!(outcome(&v6(&too_many, UDP, body)), SendCount::Other);
}

#[test]
fn what_is_not_udp_of_the_port_is_left_alone() {
    let body = datagram(&payload(44));
    for frame in [
        v4(6, 0, &[], &body),
        v6(&[], 6, &body),
        v6(&[(HOP_BY_HOP, SHORT)], 58, &body),
        // Authentication of IP is over the payload.
        v6(&[(51, SHORT)], UDP, &body),
        frame(0x0806, &body),
        // Cut in its headers.
        v4(UDP, 0, &[], &body[..5]),
        v6(&[(HOP_BY_HOP, SHORT)], UDP, &[])[..57].to_vec(),
        Vec::new(),
    ] {
        assert_eq!(outcome(&frame), SendCount::Other, "{frame:?}");
    }
    let reply = v4(UDP, 0, &[], &body);
    for (entry, expected) in [
        (entry(PORT, FROM), true),
        (entry(PORT, TO), false),
        (entry(OTHER, TO), true),
        (entry(OTHER, FROM), false),
        (entry(OTHER, FROM | TO), true),
        (entry(PORT, 0), false),
        (0, false),
    ] {
        let found = found(packet(&reply), entry);
        assert_eq!(found.is_ok(), expected, "{entry:#x}");
    }
}

#[test]
fn fragments_are_left_alone() {
    const MORE: u16 = 0x2000;
    let body = datagram(&payload(44));
    for (fragment, expected) in [
        (MORE, SendCount::Fragment),
        (MORE | 100, SendCount::Other),
        (100, SendCount::Other),
    ] {
        let frame = v4(UDP, fragment, &[], &body);
        assert_eq!(outcome(&frame), expected, "{fragment:#x}");
    }
    for (begin, expected) in [
        (0u16, SendCount::Fragment),
        (1, SendCount::Fragment),
        (0x0100, SendCount::Other),
    ] {
        let [upper, lower] = begin.to_be_bytes();
        let header = [0, upper, lower, 0, 0, 0, 9];
        let headers = [(FRAGMENT, &header[..]), (DESTINATION_OPTIONS, SHORT)];
        for headers in [&headers[..], &headers[..1]] {
            let frame = v6(headers, UDP, &body);
            assert_eq!(outcome(&frame), expected, "{begin:#x}");
        }
    }
}

#[test]
fn what_is_forwarded_or_split_later_is_left_alone() {
    let frame = v4(UDP, 0, &[], &datagram(&payload(44)));
    let forwarded = Packet {
        is_forwarded: true,
        ..packet(&frame)
    };
    let aggregate = Packet {
        is_aggregate: true,
        ..packet(&frame)
    };
    for (packet, expected) in [
        (forwarded, SendCount::Forwarded),
        (aggregate, SendCount::Aggregate),
    ] {
        assert_eq!(found(packet, entry(PORT, FROM)), Err(expected));
        // Of other ports nobody wants to know.
        assert_eq!(found(packet, entry(PORT, TO)), Err(SendCount::Other));
    }
}

#[test]
fn there_is_room_from_fourteen_octets_on() {
    let of = |octets| v4(UDP, 0, &[], &datagram(&payload(44)[..octets]));
    assert_eq!(outcome(&of(13)), SendCount::Short);
    is_at(&of(14), 34);
    // The header says more, or less, than there is.
    let mut wrong = of(14);
    for (length, expected) in [
        (23u16, false),
        (22, true),
        (21, false),
        (7, false),
        (0, false),
    ] {
        wrong[38..40].copy_from_slice(&length.to_be_bytes());
        let is_written = outcome(&wrong) == SendCount::Written;
        assert_eq!(is_written, expected, "{length}");
    }
}

#[test]
fn authenticated_ones_are_known_by_twelve_octets_of_zero() {
    let of = |octets, filled: Option<usize>| {
        let mut payload = std::vec![0; octets];
        // As in RFC 8762, figure 2: a time behind the zeros.
        payload[16..24].fill(0xee);
        if let Some(at) = filled {
            payload[at] = 1;
        }
        outcome(&v4(UDP, 0, &[], &datagram(&payload)))
    };
    for octets in [112, 113, 1_400] {
        for filled in [None, Some(3), Some(16)] {
            let outcome = of(octets, filled);
            assert_eq!(outcome, SendCount::Authenticated, "{octets}, {filled:?}");
        }
        for at in 4..16 {
            assert_eq!(of(octets, Some(at)), SendCount::Written, "octet {at}");
        }
    }
    assert_eq!(of(111, None), SendCount::Written);
}

/// Units of 2^-32 s since 1900, exactly: rounded down, and whether there is a rest.
fn exact(real_ns: u64) -> (u128, bool) {
    let units = u128::from(real_ns) << 32;
    let epoch = u128::from(UNIX_EPOCH_S) << 32;
    let (down, rest) = (units / u128::from(NS_PER_S), units % u128::from(NS_PER_S));
    (down + epoch, rest != 0)
}

#[track_caller]
fn is_ntp_of(real_ns: u64) {
    let (down, has_rest) = exact(real_ns);
    let off = ntp(real_ns).wrapping_sub(down as u64);
    // Up, and by less than 1.1 units: exact where it can be.
    let most = if has_rest { 2 } else { 0 };
    assert!(off <= most && (off > 0) == has_rest, "{real_ns}: {off}");
    // Rounded down to ns it is the same again.
    let ns = (u128::from(ntp(real_ns) as u32) * u128::from(NS_PER_S)) >> 32;
    assert_eq!(ns, u128::from(real_ns % NS_PER_S));
}

#[test]
fn times_of_ntp_are_exact() {
    /// 2026-11-25 00:00:00 UTC.
    const NOW: u64 = 1_795_564_800 * NS_PER_S;
    // Era 0 ends on 2036-02-07.
    const ERA: u64 = ((1 << 32) - UNIX_EPOCH_S) * NS_PER_S;
    for second in [0, NOW, ERA - NS_PER_S, ERA, ERA + NS_PER_S] {
        for ns in [
            0,
            1,
            2,
            511,
            512,
            513,
            999_999_487,
            999_999_488,
            999_999_998,
            999_999_999,
        ] {
            is_ntp_of(second + ns);
        }
    }
    assert_eq!(ntp(0), UNIX_EPOCH_S << 32);
    assert_eq!(ntp(ERA), 0);
    // A step that has no divisor in common with a second.
    for step in 0..200_000 {
        is_ntp_of(NOW + step * 4_999_999);
    }
}

#[test]
fn a_time_is_written_as_its_program_writes_it() {
    const SECOND: u64 = 1_795_564_800;
    let real = SECOND * NS_PER_S + 123_456_789;
    let at = |theirs_s: u64, error_estimate, tai_offset_s| {
        let published = Published {
            error_estimate: 0x8587,
            tai_offset_s,
            ..Published::default()
        };
        let was = Stamped {
            sequence: 7,
            time: theirs_s << 32 | 99,
            error_estimate,
        };
        let is = was.at(real, &published);
        assert_eq!(is.sequence, 7);
        (is.time, is.error_estimate)
    };
    // Whatever the program says of its own clock: from here on it is said of tscap's.
    for error_estimate in [0x0001, 0x3fff, 0x8001, 0xbfff] {
        let expected = (ntp(real), 0x8587);
        assert_eq!(at(SECOND, error_estimate, 37), expected);
    }
    for (theirs_s, tai_offset_s, expected_s) in [
        (SECOND, 0, SECOND),
        (SECOND, 37, SECOND),
        (SECOND + 18, 37, SECOND),
        (SECOND + 19, 37, SECOND + 37),
        (SECOND + 37, 37, SECOND + 37),
        (SECOND + 38, 37, SECOND + 37),
        (SECOND - 1, 37, SECOND),
        (0, 37, SECOND),
        (SECOND + 37, 0, SECOND),
    ] {
        let expected = (expected_s << 32 | 123_456_789, 0xc587);
        let is = at(theirs_s, 0xc001, tai_offset_s);
        assert_eq!(is, expected, "{theirs_s}, {tai_offset_s}");
    }
}

#[test]
fn fields_are_whole_words_of_a_payload() {
    let payload = payload(14);
    let words = Bytes::words(&payload[..], 2).unwrap();
    assert_eq!(Stamped::of(words), WAS);
    assert_eq!(WAS.words(), words);
    assert_eq!(STAMPED_AT % 2, 0, "a checksum is of pairs of octets");
}

#[test]
fn what_is_published_has_its_words_in_order() {
    let published = Published {
        line: crate::stamping::Line {
            from: 1,
            real: 2,
            rate: 3,
            span: 4,
        },
        tai_offset_s: -5,
        error_estimate: 0x0607,
        slack_us: 0,
        ahead_ns: 0,
    };
    let bytes = published.words().map(u64::to_ne_bytes).concat();
    assert_eq!(bytes[..32], [1u64, 2, 3, 4].map(u64::to_ne_bytes).concat());
    let at = core::mem::offset_of!(Published, tai_offset_s);
    assert_eq!(bytes[at..at + 4], (-5i32).to_ne_bytes());
    let at = core::mem::offset_of!(Published, error_estimate);
    assert_eq!(bytes[at..at + 2], 0x0607u16.to_ne_bytes());
}
