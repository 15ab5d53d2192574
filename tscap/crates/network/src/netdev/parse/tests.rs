use netlink_packet_core::Emitable;
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkInfo, LinkLayerType, LinkMessage, LinkXdp, Stats64, XdpAttached,
};

use super::*;

/// The bytes of a link message with these attributes.
fn encode(flags: LinkFlags, attributes: Vec<LinkAttribute>) -> Vec<u8> {
    let mut message = LinkMessage::default();
    message.header.index = 7;
    message.header.flags = flags;
    message.header.link_layer_type = LinkLayerType::Ether;
    message.attributes = attributes;
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

fn xdp_of(attributes: Vec<LinkXdp>) -> Option<AttachedXdp> {
    let bytes = encode(LinkFlags::empty(), vec![LinkAttribute::Xdp(attributes)]);
    Link::parse(&bytes).expect("well formed").xdp
}

#[test]
fn every_field_is_taken() {
    let mut stats = Stats64::default();
    stats.rx_packets = 1;
    stats.rx_bytes = 2;
    stats.rx_dropped = 3;
    stats.rx_missed_errors = 4;
    stats.rx_fifo_errors = 5;
    stats.rx_over_errors = 6;
    stats.rx_nohandler = 7;
    stats.rx_errors = 8;
    stats.tx_packets = 9;
    stats.tx_bytes = 10;
    stats.tx_dropped = 11;
    let bytes = encode(
        LinkFlags::Up | LinkFlags::LowerUp,
        vec![
            LinkAttribute::IfName("veth1".to_owned()),
            LinkAttribute::IfAlias("to the lab".to_owned()),
            LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]),
            LinkAttribute::Mtu(9000),
            LinkAttribute::NumRxQueues(4),
            LinkAttribute::Promiscuity(2),
            LinkAttribute::Controller(3),
            LinkAttribute::Link(5),
            LinkAttribute::Stats64(stats),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth)]),
            LinkAttribute::Xdp(vec![LinkXdp::Attached(XdpAttached::None)]),
        ],
    );
    let expected = Link {
        index: 7,
        name: "veth1".to_owned(),
        kind: Some("veth".to_owned()),
        alias: Some("to the lab".to_owned()),
        mac: Some([2, 0, 0, 0, 0, 1]),
        mtu: 9000,
        is_up: true,
        has_carrier: true,
        link_type: libc::ARPHRD_ETHER,
        builds_outer: false,
        receives_behind_hooks: false,
        promiscuity: 2,
        rx_queues: 4,
        master: Some(3),
        lower: Some(5),
        stats: Some(RxStats {
            packets: 1,
            bytes: 2,
            errors: 8,
            dropped: 3,
            missed: 4,
            fifo: 5,
            no_buffer: 6,
            no_handler: 7,
        }),
        tx_stats: Some(TxStats {
            packets: 9,
            bytes: 10,
            dropped: 11,
        }),
        xdp: None,
    };
    assert_eq!(Link::parse(&bytes).expect("well formed"), expected);
}

#[test]
fn a_lower_interface_of_another_namespace_has_no_number_here() {
    let bytes = encode(
        LinkFlags::empty(),
        vec![LinkAttribute::Link(5), LinkAttribute::LinkNetNsId(0)],
    );
    assert_eq!(Link::parse(&bytes).expect("well formed").lower, None);
}

/// An attribute of netlink: length, type, value, and pad bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).expect("a short one");
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// What a device of kind `name` with such data tells of itself.
fn info(name: &str, data: &[(u16, &[u8])]) -> Info {
    let data = data.iter().map(|(kind, value)| attribute(*kind, value));
    let data: Vec<u8> = data.flatten().collect();
    let info = [attribute(1, name.as_bytes()), attribute(2, &data)].concat();
    let info = Info::parse(&info).expect("well formed");
    assert_eq!(info.kind.as_deref(), Some(name));
    info
}

/// The attributes and modes are those of include/uapi/linux/if_link.h.
#[test]
fn an_ipvlan_in_mode_l3s_receives_behind_the_hooks() {
    let mode = |mode: u16| mode.to_ne_bytes();
    for (kind, number, expected) in [
        ("ipvlan", 0, false),
        ("ipvlan", 1, false),
        ("ipvlan", 2, true),
        ("ipvtap", 2, true),
        // Another kind gives the number another meaning.
        ("macvlan", 2, false),
    ] {
        let data: &[(u16, &[u8])] = &[(2, &[0; 2]), (1, &mode(number))];
        let found = info(kind, data).receives_behind_hooks;
        assert_eq!(found, expected, "{kind} {number}");
    }
    assert!(!info("ipvlan", &[]).receives_behind_hooks);
}

#[test]
fn gre_without_one_remote_end_builds_the_outer_header() {
    let (no_v6, v6) = ([0; 16], [0x20; 16]);
    for (kind, data, expected) in [
        ("gre", &[(7, &[192, 0, 2, 1][..])][..], false),
        ("gre", &[(7, &[0; 4])], true),
        ("gre", &[(7, &[224, 0, 0, 9])], true),
        ("gre", &[(7, &[239, 255, 255, 255])], true),
        ("gre", &[(7, &[240, 0, 0, 1])], false),
        // By routes or programs, for each packet.
        ("gre", &[(7, &[0; 4]), (18, &[])], false),
        ("ip6gre", &[(7, &no_v6)], true),
        ("ip6gre", &[(7, &v6)], false),
        ("gretap", &[(7, &[0; 4])], false),
        ("ip6gretap", &[(7, &no_v6)], false),
        ("vxlan", &[], false),
    ] {
        assert_eq!(info(kind, data).builds_outer, expected, "{kind} {data:?}");
    }
}

#[test]
fn an_address_of_another_length_is_no_mac() {
    let bytes = encode(
        LinkFlags::empty(),
        vec![LinkAttribute::Address(vec![10, 0, 0, 1])],
    );
    let link = Link::parse(&bytes).expect("well formed");
    assert_eq!(
        (link.mac, link.is_up, link.has_carrier),
        (None, false, false)
    );
}

#[test]
fn a_name_that_is_not_utf8_is_kept_readable() {
    assert_eq!(text(b"e\xffth\0rest"), "e\u{fffd}th");
}

#[test]
fn one_program_is_named_once() {
    let found = xdp_of(vec![
        LinkXdp::Attached(XdpAttached::Driver),
        LinkXdp::ProgId(12),
        LinkXdp::DrvProgId(12),
    ]);
    let expected = AttachedXdp {
        mode: AttachedMode::Native,
        program_ids: vec![12],
    };
    assert_eq!(found, Some(expected));
}

#[test]
fn several_programs_are_all_named() {
    let found = xdp_of(vec![
        LinkXdp::Attached(XdpAttached::Multiple),
        LinkXdp::SkbProgId(9),
        LinkXdp::DrvProgId(12),
    ]);
    let expected = AttachedXdp {
        mode: AttachedMode::Multi,
        program_ids: vec![12, 9],
    };
    assert_eq!(found, Some(expected));
}

#[test]
fn a_cut_message_is_an_error() {
    let bytes = encode(LinkFlags::empty(), vec![LinkAttribute::Mtu(1500)]);
    for cut in [0, 8, bytes.len() - 1] {
        assert!(Link::parse(&bytes[..cut]).is_err(), "cut at {cut}");
    }
}
