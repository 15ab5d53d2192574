extern crate std;

use std::vec::Vec;

use super::*;

/// A frame by its parts, and what changes one.
#[derive(Clone)]
struct Made(Vec<u8>);

impl Made {
    fn v4(protocol: u8, body: &[u8]) -> Self {
        let total = (20 + body.len()) as u16;
        let mut bytes = std::vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 8, 0];
        bytes.extend([
            0x45,
            0,
            (total >> 8) as u8,
            total as u8,
            0x12,
            0x34,
            0x40,
            0,
            64,
        ]);
        bytes.extend([protocol, 0xaa, 0xbb, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(body);
        Self(bytes)
    }

    fn v6(next: u8, body: &[u8]) -> Self {
        let payload = body.len() as u16;
        let mut bytes = std::vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x86, 0xdd];
        bytes.extend([0x60, 0, 0, 7, (payload >> 8) as u8, payload as u8, next, 64]);
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes.extend(body);
        Self(bytes)
    }

    fn with(&self, at: usize, bytes: &[u8]) -> Self {
        let mut changed = self.clone();
        changed.0[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    }

    fn flipped(&self, at: usize) -> Self {
        self.with(at, &[!self.0[at]])
    }

    /// With a VLAN tag in it.
    fn tagged(&self) -> Self {
        let mut bytes = self.0[..12].to_vec();
        bytes.extend([0x81, 0, 0, 100]);
        bytes.extend(&self.0[12..]);
        Self(bytes)
    }

    fn padded(&self) -> Self {
        let mut bytes = self.0.clone();
        bytes.extend([0xee; 7]);
        Self(bytes)
    }

    fn key(&self, of: KeyOf) -> Option<u64> {
        let length = self.0.len() as u32;
        key(of, &self.0[..], length, length)
    }
}

fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut bytes = Vec::new();
    for half in [source, destination, length, 0xbeef] {
        bytes.extend(half.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

fn tcp(sequence: u32, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = std::vec![0x10, 0, 0, 80];
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([
        0,
        0,
        0,
        9,
        ((20 + options.len()) as u8 / 4) << 4,
        0x18,
        1,
        0,
        0xca,
        0xfe,
        0,
        0,
    ]);
    bytes.extend(options);
    bytes.extend(payload);
    bytes
}

fn payload() -> Vec<u8> {
    (0..100u8).collect()
}

const MACS: [usize; 2] = [0, 11];
const IP: usize = 14;
const BODY4: usize = IP + 20;
const BODY6: usize = IP + 40;

/// Whether changing the byte at each of `places` leaves the key as it is.
fn ignores(made: &Made, of: KeyOf, places: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let key = made.key(of).expect("there is a key");
    let places = places.into_iter();
    places
        .map(|at| made.flipped(at).key(of) == Some(key))
        .collect()
}

#[test]
fn a_bridge_changes_nothing() {
    let frame = Made::v4(17, &udp(1, 2, &payload()));
    assert!(
        ignores(&frame, KeyOf::Bridge, 0..frame.0.len())
            .iter()
            .all(|same| !same)
    );
    assert_ne!(frame.key(KeyOf::Bridge), frame.padded().key(KeyOf::Bridge));
    // Whatever it is.
    let arp = Made(std::vec![0xff; 42]);
    assert!(arp.key(KeyOf::Bridge).is_some());
    assert_eq!(arp.key(KeyOf::Route), None);
    // Zeros are told apart by how many there are.
    let zeros = |n| Made(std::vec![0; n]).key(KeyOf::Bridge);
    assert!((60..100).all(|n| zeros(n) != zeros(n + 1)));
}

#[test]
fn a_router_changes_addresses_of_the_link_hop_limit_and_checksums() {
    let frame = Made::v4(17, &udp(1, 2, &payload()));
    let changed = [IP + 8, IP + 10, IP + 11, BODY4 + 6, BODY4 + 7];
    let places: Vec<_> = MACS.into_iter().chain(changed).collect();
    assert!(
        ignores(&frame, KeyOf::Route, places)
            .iter()
            .all(|same| *same)
    );
    // Addresses, id, ports and each byte of the payload.
    let kept = (IP + 12..BODY4 + 6)
        .chain([IP + 4, IP + 5, IP + 9])
        .chain(BODY4 + 8..frame.0.len());
    assert!(ignores(&frame, KeyOf::Route, kept).iter().all(|same| !same));
    let key = frame.key(KeyOf::Route);
    assert_eq!(frame.padded().key(KeyOf::Route), key);
    assert_eq!(frame.tagged().key(KeyOf::Route), key);
    // Marked on its way (ECN), but not of another class.
    assert_eq!(frame.with(IP + 1, &[3]).key(KeyOf::Route), key);
    assert_ne!(frame.with(IP + 1, &[4]).key(KeyOf::Route), key);

    let frame = Made::v6(6, &tcp(7, &[], &payload()));
    let changed = MACS.into_iter().chain([IP + 7, BODY6 + 16, BODY6 + 17]);
    assert!(
        ignores(&frame, KeyOf::Route, changed)
            .iter()
            .all(|same| *same)
    );
    let kept = (IP + 8..BODY6 + 16).chain(BODY6 + 18..frame.0.len());
    assert!(ignores(&frame, KeyOf::Route, kept).iter().all(|same| !same));
    let key = frame.key(KeyOf::Route);
    assert_eq!(frame.with(IP + 1, &[0x30]).key(KeyOf::Route), key);
    assert_ne!(frame.with(IP + 1, &[0x40]).key(KeyOf::Route), key);
}

#[test]
fn nat_changes_addresses_and_ports_too() {
    let frame = Made::v4(17, &udp(1, 2, &payload()));
    let changed = MACS
        .into_iter()
        .chain(IP + 10..BODY4 + 4)
        .chain([BODY4 + 6, IP + 8]);
    assert!(
        ignores(&frame, KeyOf::Nat, changed)
            .iter()
            .all(|same| *same)
    );
    let kept = [IP + 4, IP + 5, IP + 9]
        .into_iter()
        .chain(BODY4 + 8..frame.0.len());
    assert!(ignores(&frame, KeyOf::Nat, kept).iter().all(|same| !same));

    // Two segments without data are told apart by their numbers; options may be changed.
    let options = [2, 4, 5, 180];
    let segment = |sequence, options: &[u8]| Made::v4(6, &tcp(sequence, options, &[]));
    let key = segment(7, &options).key(KeyOf::Nat);
    assert_ne!(segment(8, &options).key(KeyOf::Nat), key);
    assert_eq!(segment(7, &[2, 4, 5, 100]).key(KeyOf::Nat), key);
    // The flags: a retransmitted SYN is none of its answer.
    assert_ne!(
        segment(7, &options).flipped(BODY4 + 13).key(KeyOf::Nat),
        key
    );

    let echo = Made::v4(1, &[8, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7]);
    let key = echo.key(KeyOf::Nat);
    assert_eq!(echo.with(BODY4 + 2, &[9, 9, 9, 9]).key(KeyOf::Nat), key);
    assert_ne!(echo.flipped(BODY4 + 7).key(KeyOf::Nat), key);
}

#[test]
fn fragments_are_told_apart_by_their_places() {
    let whole = Made::v4(17, &udp(1, 2, &payload()));
    let fragment = |flags: [u8; 2]| whole.with(IP + 6, &flags);
    // First, middle, last.
    let three = [[0x20, 0], [0x20, 1], [0, 1]];
    for of in [KeyOf::Route, KeyOf::Nat] {
        let mut keys: Vec<_> = three.iter().map(|it| fragment(*it).key(of)).collect();
        keys.push(whole.key(of));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 4, "{of:?}");
    }
    // What is behind the header of a later one are no ports.
    let later = fragment([0, 1]);
    assert_ne!(later.flipped(BODY4).key(KeyOf::Nat), later.key(KeyOf::Nat));
    assert_eq!(later.key(KeyOf::Gen), None);
    assert_eq!(fragment([0x20, 0]).key(KeyOf::Reply), None);

    let mut body = std::vec![17, 0, 0, 0, 0, 0, 0, 5];
    body.extend(udp(1, 2, &payload()));
    let first = Made::v6(44, &body);
    let later = first.with(BODY6 + 2, &[0, 8]);
    let other = first.with(BODY6 + 4, &[0, 0, 0, 6]);
    for of in [KeyOf::Route, KeyOf::Nat] {
        assert_ne!(first.key(of), later.key(of), "{of:?}");
        assert_ne!(first.key(of), other.key(of), "{of:?}");
    }
}

#[test]
fn a_reply_has_the_key_of_its_request() {
    let request = Made::v4(17, &udp(1000, 2000, &payload()));
    let reply = Made::v4(17, &udp(2000, 1000, &payload()))
        .with(IP + 12, &[10, 0, 0, 2, 10, 0, 0, 1])
        .with(IP + 4, &[9, 9]);
    let key = request.key(KeyOf::Reply);
    assert!(key.is_some());
    assert_eq!(reply.key(KeyOf::Reply), key);
    // Another port, another address, other data.
    for at in [BODY4, IP + 15, BODY4 + 20] {
        assert_ne!(reply.flipped(at).key(KeyOf::Reply), key);
    }
    let echo = |kind, id| Made::v6(58, &[kind, 0, 1, 2, 0, id, 0, 1, 5, 5]);
    let swapped = [
        &echo(129, 3).0[IP + 24..IP + 40],
        &echo(129, 3).0[IP + 8..IP + 24],
    ]
    .concat();
    let reply = echo(129, 3).with(IP + 8, &swapped);
    assert_eq!(reply.key(KeyOf::Reply), echo(128, 3).key(KeyOf::Reply));
    assert_ne!(
        echo(128, 4).key(KeyOf::Reply),
        echo(128, 3).key(KeyOf::Reply)
    );
    assert_eq!(echo(135, 3).key(KeyOf::Reply), None);
    assert_eq!(Made::v4(6, &tcp(1, &[], &[])).key(KeyOf::Reply), None);
}

#[test]
fn a_router_changes_nothing_of_other_protocols_or_of_options() {
    // A header of 24 bytes, with four of options.
    let frame = Made::v4(47, &payload()).with(IP, &[0x46]);
    let kept = (IP + 20..frame.0.len()).chain([IP + 9]);
    assert!(ignores(&frame, KeyOf::Route, kept).iter().all(|same| !same));
}

#[test]
fn nat_changes_the_identifier_and_checksum_of_icmp_alone() {
    let frame = Made::v4(1, &[&[8, 0, 1, 2, 3, 4, 5, 6], &payload()[..]].concat());
    let changed = BODY4 + 2..BODY4 + 6;
    assert!(
        ignores(&frame, KeyOf::Nat, changed)
            .iter()
            .all(|same| *same)
    );
    let kept = (BODY4..BODY4 + 2).chain(BODY4 + 6..frame.0.len());
    assert!(ignores(&frame, KeyOf::Nat, kept).iter().all(|same| !same));
}

#[test]
fn a_reply_is_told_by_each_byte_of_both_addresses() {
    let echo = Made::v6(58, &[128, 0, 1, 2, 0, 3, 0, 1, 5, 5]);
    let kept = IP + 8..IP + 40;
    assert!(ignores(&echo, KeyOf::Reply, kept).iter().all(|same| !same));
    let between = |one, other| {
        Made::v4(17, &udp(1000, 2000, &payload()))
            .with(IP + 15, &[one])
            .with(IP + 19, &[other])
            .key(KeyOf::Reply)
    };
    // Of one sum, of one difference by bits, and of both.
    assert_ne!(between(1, 3), between(0, 4));
    assert_ne!(between(1, 2), between(5, 6));
    assert_ne!(between(1, 2), between(3, 0));
}

#[test]
fn a_reply_is_told_by_which_port_is_at_which_address() {
    let from = |port, other| Made::v4(17, &udp(port, other, &payload())).key(KeyOf::Reply);
    assert_ne!(from(1000, 2000), from(2000, 1000));
    let cross = |one: u8, other: u8| {
        let echo = Made::v6(58, &[128, 0, 1, 2, 0, 3, 0, 1, 5, 5]);
        // Upper half of one address, lower half of the other one.
        echo.with(IP + 8, &[one])
            .with(IP + 24, &[3 - one])
            .with(IP + 23, &[other])
            .with(IP + 39, &[3 - other])
            .key(KeyOf::Reply)
    };
    assert_ne!(cross(1, 1), cross(1, 2));
}

#[test]
fn a_stream_is_told_by_run_flow_and_number() {
    let header = crate::stream::StreamHeader {
        run: 1,
        flow: 2,
        seq: 3,
        tsc: 4,
        tai: 5,
    };
    let bytes: Vec<u8> = header
        .words()
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    for frame in [
        Made::v4(17, &udp(1, 2, &bytes)),
        Made::v6(17, &udp(1, 2, &bytes)).tagged(),
    ] {
        let body = frame.0.len() - bytes.len();
        let key = frame.key(KeyOf::Gen);
        assert!(key.is_some());
        assert_eq!(
            ignores(&frame, KeyOf::Gen, body + 10..body + 22),
            [true; 12]
        );
        assert_eq!(ignores(&frame, KeyOf::Gen, body + 2..body + 10), [false; 8]);
        assert_eq!(frame.flipped(body).key(KeyOf::Gen), None);
    }
    let v4 = Made::v4(17, &udp(1, 2, &bytes));
    let v6 = Made::v6(17, &udp(1, 2, &bytes));
    assert_eq!(v4.key(KeyOf::Gen), v6.key(KeyOf::Gen));
    assert_eq!(Made::v4(17, &udp(1, 2, &bytes[..9])).key(KeyOf::Gen), None);
}

#[test]
fn headers_that_are_cut_or_wrong_have_no_key() {
    let whole = Made::v4(17, &udp(1, 2, &payload()));
    let cut = |made: &Made, len: usize| {
        let whole = made.0.len() as u32;
        key(KeyOf::Route, &made.0[..len], len as u32, whole)
    };
    assert_eq!(cut(&whole, BODY4 - 1), None);
    assert!(cut(&whole, BODY4).is_some());
    // A header of 16 bytes, and a packet that ends in its header.
    assert_eq!(whole.with(IP, &[0x44]).key(KeyOf::Route), None);
    assert_eq!(whole.with(IP + 2, &[0, 19]).key(KeyOf::Route), None);
    let v6 = Made::v6(17, &udp(1, 2, &payload()));
    assert_eq!(cut(&v6, BODY6 - 1), None);
    // A fragment that ends within its header.
    let fragment = Made::v6(44, &[17, 0, 0, 1]);
    assert_eq!(fragment.key(KeyOf::Route), None);
    // An aggregate whose length the field can't say.
    assert!(whole.with(IP + 2, &[0, 0]).key(KeyOf::Route).is_some());
    // A TCP header that is longer than its packet.
    let segment = Made::v4(6, &tcp(1, &[], &[])).with(BODY4 + 12, &[0xf0]);
    assert!(segment.key(KeyOf::Nat).is_some());
}

#[test]
fn each_bit_of_a_long_frame_changes_about_half_of_its_key() {
    let frame = Made::v4(17, &udp(1, 2, &[0x5a; 1400]));
    let key = frame.key(KeyOf::Bridge).unwrap();
    for at in (0..frame.0.len()).step_by(7) {
        let changed = (frame
            .with(at, &[frame.0[at] ^ 1])
            .key(KeyOf::Bridge)
            .unwrap()
            ^ key)
            .count_ones();
        assert!((12..=52).contains(&changed), "{at}: {changed}");
    }
    // What is beyond the longest that is read counts by the length alone.
    let mut longest = Made(std::vec![1; MOST_BYTES as usize + 10]);
    let key = longest.key(KeyOf::Bridge);
    longest.0[MOST_BYTES as usize] = 2;
    assert_eq!(longest.key(KeyOf::Bridge), key);
    longest.0.push(1);
    assert_ne!(longest.key(KeyOf::Bridge), key);
}

/// A live frame is read up to there only, one in a file to its end.
#[test]
fn what_is_behind_the_longest_that_is_read_counts_by_the_whole_length() {
    let long = |more: usize| {
        let mut bytes = std::vec![0x5a; MOST_BYTES as usize + more];
        bytes[..4].fill(1);
        Made::v4(17, &udp(1, 2, &bytes))
    };
    for of in [KeyOf::Bridge, KeyOf::Route, KeyOf::Nat, KeyOf::Reply] {
        let (frame, longer) = (long(0), long(1));
        let live = |frame: &Made| {
            let there = &frame.0[..MOST_BYTES as usize];
            key(of, there, MOST_BYTES, frame.0.len() as u32)
        };
        assert_eq!(live(&frame), frame.key(of), "{of:?}");
        assert_eq!(live(&longer), longer.key(of), "{of:?}");
        // Of the UDP header the length alone differs, which no router changes.
        assert_ne!(live(&frame), live(&longer), "{of:?}");
    }
    let nine = Made::v4(1, &[8; MOST_BYTES as usize]);
    let ten = Made::v4(1, &[8; MOST_BYTES as usize + 1]);
    for of in [KeyOf::Nat, KeyOf::Reply] {
        assert_ne!(nine.key(of), ten.key(of), "{of:?}");
    }
}

#[test]
fn what_is_behind_a_third_tag_is_not_looked_for() {
    let frame = Made::v4(17, &udp(1, 2, &payload()));
    let twice = frame.tagged().tagged();
    assert_eq!(twice.key(KeyOf::Route), frame.key(KeyOf::Route));
    assert_eq!(twice.tagged().key(KeyOf::Route), None);
}

#[test]
fn neither_a_tag_nor_padding_is_of_a_packet() {
    let echo = [8, 0, 1, 2, 3, 4, 5, 6, 7];
    for (of, frame) in [
        (KeyOf::Nat, Made::v4(17, &udp(1, 2, &payload()))),
        (KeyOf::Reply, Made::v4(17, &udp(1, 2, &payload()))),
        (KeyOf::Reply, Made::v4(1, &echo)),
        (KeyOf::Route, Made::v6(17, &udp(1, 2, &payload()))),
        (KeyOf::Route, Made::v4(6, &tcp(7, &[], &[]))),
        (KeyOf::Nat, Made::v4(6, &tcp(7, &[], &[]))),
    ] {
        let key = frame.key(of);
        assert!(key.is_some());
        assert_eq!(frame.tagged().key(of), key, "{of:?}");
        assert_eq!(frame.padded().key(of), key, "{of:?}");
    }
}

#[test]
fn nat_keeps_each_byte_behind_the_header() {
    let same = |frame: &Made, kept: std::ops::Range<usize>| {
        let all = ignores(frame, KeyOf::Nat, kept);
        all.iter().any(|same| *same)
    };
    // Another protocol has no header that is known.
    let other = Made::v4(47, &payload());
    assert!(!same(&other, BODY4..other.0.len()));
    let segment = Made::v4(6, &tcp(7, &[2, 4, 5, 180], &payload()));
    assert!(!same(&segment, BODY4 + 24..segment.0.len()));
    // A length of the header that can't be.
    let wrong = segment.with(BODY4 + 12, &[0x40]);
    assert!(!same(&wrong, BODY4 + 20..wrong.0.len()));
    let translated = ignores(&wrong, KeyOf::Nat, IP + 12..BODY4 + 4);
    assert!(translated.iter().all(|same| *same));
    let options = segment.flipped(BODY4 + 20).key(KeyOf::Nat);
    assert_eq!(options, segment.key(KeyOf::Nat));
}

#[test]
fn a_fragment_of_v6_is_told_by_its_id_and_not_by_its_addresses() {
    let mut body = std::vec![17, 0, 0, 1, 0, 0, 0, 5];
    body.extend(udp(1, 2, &payload()));
    let fragment = Made::v6(44, &body);
    let id = BODY6 + 4..BODY6 + 8;
    for of in [KeyOf::Route, KeyOf::Nat] {
        assert_eq!(ignores(&fragment, of, id.clone()), [false; 4], "{of:?}");
    }
    let addresses = ignores(&fragment, KeyOf::Nat, IP + 8..IP + 40);
    assert!(addresses.iter().all(|same| *same));
}

#[test]
fn what_icmp_says_of_others_is_no_reply() {
    let unreachable = Made::v4(1, &[3, 1, 1, 2, 0, 0, 0, 0, 5, 5]);
    assert_eq!(unreachable.key(KeyOf::Reply), None);
    assert!(unreachable.with(BODY4, &[0]).key(KeyOf::Reply).is_some());
}
