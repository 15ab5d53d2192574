//! Packets that get their times.

use etherparse::{
    IpNumber, Ipv6Extensions, Ipv6RawExtHeader, Ipv6RoutingExtensions, NetSlice, SlicedPacket,
    TransportSlice,
};
use tscap_protocol::{PORT, TimeFormat};
use tscap_testkit::capture::{capture_both, capture_on};
use tscap_testkit::files;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::packets::each;
use tscap_testkit::root::root;
use tscap_testkit::test_packets::reply;
use tscap_time::timex::KernelClock;

use super::packets::{Family, Made, Sockets, checksums_are_right};
use super::{bed, outcomes, sending};

/// Packets of a run.
const MANY: usize = 100;

/// Addresses of IPv4: from `rx0` to `tx0`.
const V4: ([u8; 4], [u8; 4]) = ([10, 9, 0, 2], [10, 9, 0, 1]);

/// Where the device or the kernel computes the checksum later, and where it stands in the packet
/// already.
#[test]
fn either_family_with_either_checksum() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-checksums");
    let running = sending(&bench);
    for later in [true, false] {
        bench.rx.offload("tx", later);
        for family in Family::ALL {
            Sockets::new(&bench, family).exchange(MANY);
        }
    }
    checksums_are_right(&bench.tx.netns);
    let said = outcomes(&running.stop(), 4 * MANY, &[]);
    let kernel = KernelClock::read().expect("adjtimex");
    assert_eq!(said["synchronised"], kernel.synchronised, "{said}");
}

/// Each length from the least one on, also odd ones, whose last octet is half a word of the
/// checksum.
#[test]
fn any_length_from_fourteen_octets_on() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-lengths");
    bench.rx.offload("tx", false);
    let running = sending(&bench);
    let sockets = Family::ALL.map(|family| Sockets::new(&bench, family));
    let lengths = (14..130).chain([1_399, 1_400]);
    for (sequence, octets) in lengths.clone().enumerate() {
        for sockets in &sockets {
            let sent = sockets.send(&reply(sequence as u32, octets, TimeFormat::Ntp));
            sent.has_its_time(&sockets.arrived());
        }
    }
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), 2 * lengths.count(), &[]);
}

/// An extension header of IPv6 that is so many octets long, with an option of experiments (RFC
/// 4727) that receivers skip. Of padding Linux takes seven octets at most.
fn option(octets: usize) -> Ipv6RawExtHeader {
    header(octets, [0x1e, octets as u8 - 4])
}

/// One that begins with these two octets behind its length.
fn header(octets: usize, first: [u8; 2]) -> Ipv6RawExtHeader {
    let mut payload = vec![0; octets - 2];
    payload[..2].copy_from_slice(&first);
    Ipv6RawExtHeader::new_raw(IpNumber::UDP, &payload).expect("whole words")
}

#[test]
fn headers_before_that_of_udp_are_passed_over() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-headers");
    let running = sending(&bench);
    let socket = PacketSocket::open(&bench.rx);
    let extensions = [
        Ipv6Extensions {
            destination_options: Some(option(8)),
            ..Ipv6Extensions::default()
        },
        Ipv6Extensions {
            hop_by_hop_options: Some(option(16)),
            destination_options: Some(option(24)),
            ..Ipv6Extensions::default()
        },
        // Of type 0 with no segments left, which the receiver passes over.
        Ipv6Extensions {
            routing: Some(Ipv6RoutingExtensions {
                routing: header(24, [0, 0]),
                final_destination_options: Some(option(8)),
            }),
            ..Ipv6Extensions::default()
        },
    ];
    let v4 = Made::new(&bench, Made::v4(V4, &[]));
    let unchecked = Made {
        is_unchecked: true,
        ..v4.clone()
    };
    let frames = [
        v4,
        unchecked,
        Made::new(&bench, Made::v4(V4, &[1; 4])),
        Made::new(&bench, Made::v4(V4, &[1; 40])),
    ];
    let v4 = Sockets::new(&bench, Family::V4);
    let mut written = 0;
    for frame in &frames {
        let sent = v4.send_frame(&socket, frame, &reply(1, 44, TimeFormat::Ntp));
        sent.has_its_time(&v4.arrived());
        written += 1;
    }
    let v6 = Sockets::new(&bench, Family::V6);
    for extensions in extensions {
        let frame = Made::new(&bench, Made::v6(extensions));
        let sent = v6.send_frame(&socket, &frame, &reply(1, 44, TimeFormat::Ntp));
        sent.has_its_time(&v6.arrived());
        written += 1;
    }
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), written, &[]);
}

/// Tags that stand in the frame's bytes. The receiver has no interface for them.
#[test]
fn packets_of_a_vlan_get_their_times() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-vlan");
    let running = sending(&bench);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.tx, &path).ready();
    let socket = PacketSocket::open(&bench.rx);
    let sockets = Family::ALL.map(|family| Sockets::new(&bench, family));
    let headers = [Made::v4(V4, &[]), Made::v6(Ipv6Extensions::default())];
    let mut sent = Vec::new();
    for (sockets, headers) in sockets.iter().zip(headers) {
        for tags in [1, 2] {
            let frame = Made {
                tags,
                ..Made::new(&bench, headers.clone())
            };
            let payload = reply(sent.len() as u32, 44, TimeFormat::Ntp);
            sent.push(sockets.send_frame(&socket, &frame, &payload));
        }
    }
    outcomes(&running.stop(), sent.len(), &[]);
    capture.stop().success();
    let mut sent = sent.into_iter();
    each(&path, |packet| {
        let Ok(packet) = SlicedPacket::from_ethernet(packet.data) else {
            return;
        };
        let (Some(net), Some(TransportSlice::Udp(udp))) = (packet.net, packet.transport) else {
            return;
        };
        let sent = sent.next().expect("a packet more than were sent");
        sent.has_its_time(udp.payload());
        let header = udp.to_header();
        let checksum = match net {
            NetSlice::Ipv4(ip) => {
                header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
            }
            NetSlice::Ipv6(ip) => {
                header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
            }
            NetSlice::Arp(_) => unreachable!("UDP"),
        };
        assert_eq!(Ok(udp.checksum()), checksum);
    })
    .expect("read the capture");
    assert_eq!(sent.next().map(|it| it.payload), None);
}

/// A session-sender: the port is that of its reflector.
#[test]
fn packets_to_the_port_get_their_times() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-requests");
    let running = sending(&bench);
    for family in Family::ALL {
        let (from, to) = ((family.ours(), 0).into(), (family.theirs(), PORT).into());
        Sockets::between(&bench, from, to).exchange(MANY);
    }
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), 2 * MANY, &[]);
}

#[test]
fn a_program_keeps_its_format() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-ptp");
    let running = sending(&bench);
    let sockets = Sockets::new(&bench, Family::V4);
    for sequence in 0..MANY as u32 {
        let sent = sockets.send(&reply(sequence, 44, TimeFormat::Ptp));
        let error = sent.has_its_time(&sockets.arrived());
        assert_eq!(error.format, TimeFormat::Ptp);
    }
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), MANY, &[]);
}

/// A capture of both directions comes later, and both see all packets.
#[test]
fn a_capture_goes_beside_it() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-beside");
    let running = sending(&bench);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let capture = capture.with(["udp", "and", "src", "port", "862"]).ready();
    let sockets = Sockets::new(&bench, Family::V4);
    sockets.exchange(MANY);
    let captured = capture.stop().success();
    assert_eq!(captured.written, MANY as u64, "{captured:?}");
    sockets.exchange(MANY);
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), 2 * MANY, &[]);
}
