use super::*;
use crate::measuring::measure::fixtures::{Headers, header};
use crate::measuring::qos::fixtures::{rtp, tcp, udp, udp_to};

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
            is_syn: false,
        };
        assert_eq!(found.carries, Carries::Tcp(segment));
    }
}

#[test]
fn each_kind_of_stream_is_found() {
    for headers in Headers::each_kind() {
        let mut frame = headers.frame(&header(3, 9));
        assert_eq!(name(&frame, FlowBy::Gen), "run 4660 flow 3");
        let last = frame.len() - 1;
        frame[last] ^= 1;
        assert_eq!(of(&frame, FlowBy::Gen), Look::Malformed);
    }
}

#[test]
fn what_is_cut_is_not_guessed() {
    let frame = rtp(3, 160, 7);
    let cut = |at: usize, by| look(&frame[..at], frame.len() as u32, by, false);
    assert_eq!(cut(10, FlowBy::FiveTuple), Look::Cut);
    assert_eq!(cut(20, FlowBy::FiveTuple), Look::Cut);
    assert_eq!(cut(36, FlowBy::FiveTuple), Look::Cut);
    assert!(matches!(cut(42, FlowBy::FiveTuple), Look::Flow(_)));
    assert_eq!(cut(50, FlowBy::Rtp), Look::Cut);
    assert!(matches!(cut(54, FlowBy::Rtp), Look::Flow(_)));
    assert_eq!(of(&frame[..20], FlowBy::FiveTuple), Look::Malformed);
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
    assert_eq!(of(&other, FlowBy::FiveTuple), Look::Malformed);
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
    assert_eq!(look_at(&short), Look::Malformed);
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
