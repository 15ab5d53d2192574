use etherparse::PacketBuilder;

use super::*;
use crate::fixtures::{rtp, tcp, udp, udp_to};
use tscap_streams::fixtures::{Headers, header};

fn of(frame: &[u8], by: FlowBy) -> Look {
    look(frame, frame.len() as u32, by, false)
}

fn found(look: Look) -> Found {
    match look {
        Look::Flow(found) => found,
        other => panic!("{other:?}"),
    }
}

fn name(frame: &[u8], by: FlowBy) -> String {
    found(of(frame, by)).id.to_string()
}

#[test]
fn a_frame_has_a_flow_by_each_key() {
    let frame = udp(5, b"payload");
    let five = "10.0.0.1:5 → 10.0.0.2:9 udp";
    assert_eq!(name(&frame, FlowBy::FiveTuple), five);
    assert_eq!(name(&frame, FlowBy::Dscp), "dscp 0 (CS0)");
    assert_eq!(of(&frame, FlowBy::Gen), Look::WithoutKey);
    assert_eq!(of(&frame, FlowBy::Rtp), Look::WithoutKey);
    let frame = rtp(3, 160, 0xabcd);
    assert!(name(&frame, FlowBy::Rtp).ends_with("udp ssrc 0x0000abcd"));
    let Carries::Rtp(header) = found(of(&frame, FlowBy::Rtp)).carries else {
        panic!("no RTP");
    };
    assert_eq!((header.seq, header.timestamp), (3, 160));
    assert_eq!(of(&tcp(5, b"x"), FlowBy::Rtp), Look::WithoutKey);
}

#[test]
fn tcp_says_its_bytes_also_where_they_are_cut() {
    let frame = tcp(77, &[0; 100]);
    for captured in [frame.len(), frame.len() - 90] {
        let look = look(
            &frame[..captured],
            frame.len() as u32,
            FlowBy::FiveTuple,
            false,
        );
        let found = found(look);
        assert_eq!(found.vlans, [Some(7), None]);
        let segment = Segment {
            seq: 77,
            payload: 100,
            ack: Some(1),
            ..Segment::default()
        };
        assert_eq!(found.carries, Carries::Tcp(segment));
    }
}

/// TCP over IPv4.
fn tcp_v4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(80, 5_000, 77, 1_000);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// As of an aggregate of more than 64 KiB, or one that a program sees before it is cut into
/// segments. The frame says how long it is.
#[test]
fn a_packet_whose_header_says_no_length_ends_with_its_frame() {
    let inside = |frame: &[u8]| {
        let vxlan = [&[8, 0, 0, 0, 0, 0, 7, 0][..], frame].concat();
        udp_to(VXLAN_PORT, &vxlan)
    };
    for (frame, length_at) in [(tcp_v4(&[7; 900]), 16), (tcp(77, &[7; 900]), 18 + 4)] {
        let mut without = frame.clone();
        without[length_at..length_at + 2].fill(0);
        for (frame, is_inner) in [(&without, false), (&inside(&without), true)] {
            for missing in [0, 850] {
                let captured = &frame[..frame.len() - missing];
                let look = look(captured, frame.len() as u32, FlowBy::FiveTuple, is_inner);
                let found = found(look);
                let Carries::Tcp(segment) = found.carries else {
                    panic!("{found:?}");
                };
                assert_eq!((segment.payload, found.is_inner), (900, is_inner));
            }
        }
        // Longer than the field can say, of which the first bytes were captured.
        let long = look(&without[..90], 180_000, FlowBy::FiveTuple, false);
        let Carries::Tcp(segment) = found(long).carries else {
            panic!("no TCP");
        };
        let headers = (frame.len() - 900) as u32;
        assert_eq!(segment.payload, 180_000 - headers);
        // Nor behind its frame.
        let mut longer = frame.clone();
        longer[length_at..length_at + 2].copy_from_slice(&9_000u16.to_be_bytes());
        let Carries::Tcp(segment) = found(of(&longer, FlowBy::FiveTuple)).carries else {
            panic!("no TCP");
        };
        assert_eq!(segment.payload, 900);
        // Padding is not of the packet.
        let mut padded = frame.clone();
        padded.extend([0; 40]);
        let Carries::Tcp(segment) = found(of(&padded, FlowBy::FiveTuple)).carries else {
            panic!("no TCP");
        };
        assert_eq!(segment.payload, 900);
        // Nor does it end before its header.
        let mut short = frame.clone();
        short[length_at..length_at + 2].copy_from_slice(&5u16.to_be_bytes());
        match of(&short, FlowBy::FiveTuple) {
            Look::Flow(found) => assert_eq!(found.carries, Carries::Nothing),
            look => assert_eq!(look, Look::Malformed(Malformed::Length)),
        }
    }
}

#[test]
fn each_kind_of_stream_is_found() {
    for headers in Headers::each_kind() {
        let mut frame = headers.frame(&header(3, 9));
        assert_eq!(name(&frame, FlowBy::Gen), "run 4660 flow 3");
        let last = frame.len() - 1;
        frame[last] ^= 1;
        assert_eq!(
            of(&frame, FlowBy::Gen),
            Look::Malformed(Malformed::Checksum)
        );
    }
}

#[test]
fn what_is_cut_is_not_guessed() {
    let frame = rtp(3, 160, 7);
    let cut = |at: usize, by| look(&frame[..at], frame.len() as u32, by, false);
    assert_eq!(cut(10, FlowBy::FiveTuple), Look::Malformed(Malformed::Cut));
    assert_eq!(cut(20, FlowBy::FiveTuple), Look::Malformed(Malformed::Cut));
    assert_eq!(cut(36, FlowBy::FiveTuple), Look::Malformed(Malformed::Cut));
    assert!(matches!(cut(42, FlowBy::FiveTuple), Look::Flow(_)));
    assert_eq!(cut(50, FlowBy::Rtp), Look::Malformed(Malformed::Cut));
    assert!(matches!(cut(54, FlowBy::Rtp), Look::Flow(_)));
    assert_eq!(
        of(&frame[..20], FlowBy::FiveTuple),
        Look::Malformed(Malformed::Length)
    );
}

#[test]
fn fragments_and_other_protocols_are_told_apart() {
    let mut fragment = udp(5, b"payload");
    fragment[20] |= 0x20;
    assert_eq!(of(&fragment, FlowBy::FiveTuple), Look::Fragment);
    assert_eq!(of(&fragment, FlowBy::Gen), Look::Fragment);
    assert_eq!(name(&fragment, FlowBy::Dscp), "dscp 0 (CS0)");
    let mut other = vec![0; 60];
    other[12..14].copy_from_slice(&[0x88, 0xcc]);
    assert_eq!(of(&other, FlowBy::FiveTuple), Look::NonIp);
    other[12..14].copy_from_slice(&[0x08, 0x06]);
    other[14..20].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
    assert_eq!(of(&other, FlowBy::FiveTuple), Look::NonIp);
    // Not even an IP header behind the type of IPv4.
    other[12..14].copy_from_slice(&[0x08, 0x00]);
    assert_eq!(
        of(&other, FlowBy::FiveTuple),
        Look::Malformed(Malformed::Length)
    );
}

#[test]
fn the_inner_packet_counts_where_it_is_asked_for() {
    let inner = udp(5, b"inside");
    let vxlan = udp_to(
        VXLAN_PORT,
        &[&[0x08, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat(),
    );
    let mut gre_ethernet = vxlan.clone();
    // The same with GRE in the place of UDP and VXLAN: sequence number, Ethernet.
    gre_ethernet.truncate(34);
    gre_ethernet[23] = GRE;
    let mut gre_ip = gre_ethernet.clone();
    gre_ethernet.extend([0x10, 0, 0x65, 0x58, 0, 0, 0, 1]);
    gre_ethernet.extend(&inner);
    gre_ip.extend([0, 0, 0x08, 0x00]);
    gre_ip.extend(&inner[14..]);
    for (frame, outer) in [(&vxlan, "udp"), (&gre_ethernet, "gre"), (&gre_ip, "gre")] {
        let length = frame.len() as u32;
        let outside = found(look(frame, length, FlowBy::FiveTuple, false));
        assert!(outside.id.to_string().ends_with(outer), "{outside:?}");
        let inside = found(look(frame, length, FlowBy::FiveTuple, true));
        assert!(inside.is_inner);
        assert_eq!(inside.id.to_string(), "10.0.0.1:5 → 10.0.0.2:9 udp");
    }
    let plain = found(look(&inner, inner.len() as u32, FlowBy::FiveTuple, true));
    assert!(!plain.is_inner);
    let short = udp_to(VXLAN_PORT, &[8, 0]);
    let look_at = |frame: &[u8]| look(frame, frame.len() as u32, FlowBy::FiveTuple, true);
    assert_eq!(look_at(&short), Look::Malformed(Malformed::Length));
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        kind in 0..4_usize,
        head in 0..5_usize,
    ) {
        let kinds = [FlowBy::FiveTuple, FlowBy::Rtp, FlowBy::Dscp, FlowBy::Gen];
        let heads: [&[u8]; 5] = [
            &[],
            &[0x08, 0x00, 0x45],
            &[0x86, 0xdd, 0x60],
            &[0x81, 0x00, 0, 1, 0x08, 0x00, 0x45],
            &udp_to(VXLAN_PORT, &[8, 0, 0, 0, 0, 0, 0, 0])[12..],
        ];
        let frame = [&[0; 12], heads[head], &bytes[..]].concat();
        look(&frame, frame.len() as u32, kinds[kind], true);
        look(&frame, frame.len() as u32 + 100, kinds[kind], true);
    }
}
