//! Devices that are no end of a cable: a bridge, the loopback, a tun. The kernels of the
//! machines here have no VLAN devices: the bridge has tags beside frames and in them.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use tscap_file::accounting::Direction;
use tscap_testkit::bridged::Bridged;
use tscap_testkit::command::run;
use tscap_testkit::frame::Frame;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::root::root_with;
use tscap_testkit::tun::Tun;

use super::versus::{LAST, Versus};

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "tcpdump", "capinfos", "ping"];

fn ping(from: &Netns, address: &str) {
    let mut ping = from.command("ping");
    ping.args(["-q", "-c", "30", "-i", "0.002", "-s", "1000", address]);
    let done = run(&mut ping, Duration::from_secs(60));
    assert!(done.stdout.contains(" 30 received"), "{}", done.stdout);
}

/// Each frame that the bridge forwards is seen at the port that it came by, on the bridge,
/// and at the port that it leaves by.
#[test]
fn a_bridge_of_two_ports() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bridged = Bridged::new("dir-bridge", 1500);
    let Bridged {
        bench,
        out,
        bridge,
        far,
    } = &bridged;
    for (port, address) in [(&bench.tx, 1), (bridge, 2), (far, 3)] {
        let address = format!("10.11.0.{address}/24");
        port.netns
            .ip(&["address", "add", &address, "dev", &port.name]);
    }
    let versus = Versus::start(&[&bench.rx, out, bridge], &[]);
    ping(&bench.tx.netns, "10.11.0.3");
    ping(&bench.tx.netns, "10.11.0.2");
    ping(&bridge.netns, "10.11.0.3");
    versus.last_from(&[&bench.tx, far, bridge]);
    let compared = versus.stop();
    compared.are_same();
    for direction in Direction::ALL {
        for side in &compared.sides {
            assert!(side[direction].frames() >= 60);
        }
    }
}

/// The bridge takes the tag of a frame off, keeps it beside the frame, and leaves it there
/// for a port that puts tags in itself; tscap puts it back, as tcpdump does.
#[test]
fn tags_that_a_bridge_took_off_are_put_back_in_what_it_sends() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    for (offload, hook, point) in [
        (true, "auto", "qdisc"),
        (true, "tcx", "qdisc"),
        (false, "tcx", "qdisc"),
        (true, "auto", "driver"),
        (false, "auto", "driver"),
    ] {
        let bridged = Bridged::new("dir-tags", 1500);
        let Bridged {
            bench,
            out,
            bridge,
            far,
        } = &bridged;
        out.offload("txvlan", offload);
        bench.rx.offload("rxvlan", offload);
        let frame = |length| Frame::between(bench.tx.mac, far.mac, length);
        let mut frames = Vec::new();
        for length in [60, 63, 124, 125, 128, 129, 1000, 1506] {
            let kinds = [
                frame(length),
                frame(length).tagged(0x8100, 100),
                frame(length).tagged(0x88a8, 7).tagged(0x8100, 42),
            ];
            frames.extend(kinds.map(|it| it.bytes(length as u64)));
        }
        let versus = Versus::start(
            &[&bench.rx, out, bridge],
            &["--hook", hook, "--egress-point", point],
        );
        PacketSocket::open(&bench.tx).send_all(&frames);
        versus.last_from(&[&bench.tx, far, bridge]);
        let compared = versus.stop();
        if point == "driver" {
            compared.are_same_before_the_driver();
        } else {
            compared.are_same();
        }
        let [came, left, _] = &compared.sides[..] else {
            panic!("three interfaces");
        };
        for side in [&came[Direction::In], &left[Direction::Out]] {
            for (packet, sent) in side.ours.iter().zip(&frames) {
                assert_eq!(packet.data, *sent);
            }
            assert_eq!(side.frames(), frames.len());
        }
    }
}

/// The loopback receives what it sends: as tcpdump shows it once, so does tscap.
#[test]
fn the_loopback_has_each_frame_once() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let netns = Arc::new(Netns::new("dir-lo"));
    let lo = Port::find(&netns, "lo");
    let versus = Versus::start(&[&lo], &[]);
    ping(&netns, "127.0.0.1");
    netns.enter(|| {
        let [one, other] = [4000, 4001].map(|port| UdpSocket::bind(("127.0.0.1", port)));
        let (one, other) = (one.expect("bind"), other.expect("bind"));
        // The longest is longer than a record can be.
        for length in [0, 1, 1000, 1472, 1473, 30_000, 65_400, 65_507] {
            let sent = one.send_to(&vec![7; length], other.local_addr().expect("an address"));
            assert_eq!(sent.expect("send"), length);
        }
    });
    versus.last_from(&[&lo]);
    let compared = versus.stop();
    let side = compared.side(Direction::In);
    side.is_same("in");
    // Requests and answers, and the datagrams.
    assert_eq!(side.frames(), 60 + 8);
    let sent = compared.side(Direction::Out);
    assert_eq!((sent.ours.len(), sent.theirs.len()), (0, 0));
    let longest = side.ours.iter().max_by_key(|it| it.origlen).expect("one");
    assert_eq!(longest.origlen, 65_507 + 8 + 20 + 14);
    assert!(longest.data.len() < longest.origlen as usize);
}

/// An IPv4 packet with a datagram from 10.12.0.2 to 10.12.0.1, port 4000.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let length = |header: usize| u16::try_from(header + payload.len()).expect("a short one");
    let mut packet = vec![0x45, 0];
    packet.extend(length(28).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 12, 0, 2, 10, 12, 0, 1]);
    let words = packet
        .chunks(2)
        .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
    let sum: u32 = words.sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend([0x0f, 0xa0, 0x0f, 0xa0]);
    packet.extend(length(8).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// IP packets without an Ethernet header, down to a single byte.
#[test]
fn a_tun() {
    tun(&[]);
}

#[test]
fn a_tun_before_the_driver() {
    tun(&["--egress-point", "driver"]);
}

fn tun(options: &[&str]) {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let netns = Arc::new(Netns::new("dir-tun"));
    let mut tun = Tun::new(&netns, "tun0");
    netns.ip(&["address", "add", "10.12.0.1/24", "dev", "tun0"]);
    let socket = netns.enter(|| UdpSocket::bind("10.12.0.1:4000").expect("bind"));
    let versus = Versus::start(&[&tun.port], options);
    let last = LAST.to_be_bytes();
    let payloads = [0, 1, 7, 99, 100, 101, 1000, 1472].map(|length| vec![7; length]);
    tun.receive(&[0x45]);
    tun.receive(&[0x60, 0, 0]);
    for payload in payloads.iter().map(|it| &it[..]).chain([&last[..]]) {
        tun.receive(&datagram(payload));
        let sent = socket.send_to(payload, "10.12.0.2:4000");
        assert_eq!(sent.expect("send"), payload.len());
    }
    let compared = versus.stop();
    compared.are_same();
    let received = compared.side(Direction::In);
    assert_eq!(
        (received.ours[0].data.len(), received.ours[1].data.len()),
        (1, 3)
    );
    assert_eq!(received.frames(), 2 + payloads.len());
    for (packet, payload) in received.ours[2..].iter().zip(&payloads) {
        assert_eq!(packet.data, datagram(payload));
    }
    assert_eq!(compared.side(Direction::Out).frames(), payloads.len());
}

/// What one of two interfaces in the namespace sends to the other stands at both.
#[test]
fn both_ends_of_a_pair_in_one_namespace() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let netns = Arc::new(Netns::new("dir-pair"));
    netns.ip(&[
        "link", "add", "one0", "type", "veth", "peer", "name", "two0",
    ]);
    let [one, two] = ["one0", "two0"].map(|name| {
        netns.ip(&["link", "set", name, "up"]);
        Port::find(&netns, name)
    });
    one.wait_up();
    two.wait_up();
    let versus = Versus::start(&[&one, &two], &[]);
    let frame = Frame::new(&one, &two, 300);
    let frames: Vec<_> = (0..400).map(|number| frame.bytes(number)).collect();
    PacketSocket::open(&one).send_all(&frames);
    versus.last_from(&[&one, &two]);
    let compared = versus.stop();
    compared.are_same();
    let at = |number: usize, direction| &compared.sides[number][direction];
    assert_eq!(at(0, Direction::Out).frames(), 400);
    assert_eq!(at(1, Direction::In).frames(), 400);
    // Each was stamped as it was to be sent before it was stamped as it came in.
    let pairs = at(0, Direction::Out)
        .ours
        .iter()
        .zip(&at(1, Direction::In).ours);
    for (sent, received) in pairs {
        assert_eq!(sent.data, received.data);
        assert!(sent.nanos <= received.nanos);
    }
}
