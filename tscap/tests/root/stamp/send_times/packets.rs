//! Test packets: how they are sent, and what arrives.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, PacketBuilder,
    VlanId,
};
use tscap_protocol::{PORT, TimeFormat};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::test_packets::{Sent, reply};

/// Of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Where tscap is.
    pub fn ours(self) -> IpAddr {
        match self {
            Self::V4 => [10, 9, 0, 2].into(),
            Self::V6 => [0xfd09, 0, 0, 0, 0, 0, 0, 2].into(),
        }
    }

    /// Where the packets arrive.
    pub fn theirs(self) -> IpAddr {
        match self {
            Self::V4 => [10, 9, 0, 1].into(),
            Self::V6 => [0xfd09, 0, 0, 0, 0, 0, 0, 1].into(),
        }
    }
}

/// Sockets of a family at both ends.
#[derive(Debug)]
pub struct Sockets {
    pub sender: UdpSocket,
    pub receiver: UdpSocket,
}

impl Sockets {
    /// From the port of session-reflectors to any.
    pub fn new(bench: &Bench, family: Family) -> Self {
        let (ours, theirs) = (family.ours(), family.theirs());
        Self::between(bench, (ours, PORT).into(), (theirs, 0).into())
    }

    /// From one address to the other.
    pub fn between(bench: &Bench, from: SocketAddr, to: SocketAddr) -> Self {
        let bind = |netns: &Netns, address: SocketAddr| {
            let socket = netns.enter(|| UdpSocket::bind(address));
            socket.unwrap_or_else(|error| panic!("bind {address}: {error}"))
        };
        let receiver = bind(&bench.tx.netns, to);
        let sender = bind(&bench.rx.netns, from);
        let there = receiver.local_addr().expect("an address");
        sender.connect(there).expect("connect");
        receiver
            .set_read_timeout(Some(LIMIT))
            .expect("a time limit");
        Self { sender, receiver }
    }

    /// Sends a payload.
    pub fn send(&self, payload: &[u8]) -> Sent {
        Sent::by(payload, || {
            let sent = self.sender.send(payload);
            assert_eq!(sent.expect("send a packet"), payload.len());
        })
    }

    /// What arrives next.
    pub fn arrived(&self) -> Vec<u8> {
        let mut bytes = vec![0; 65_536];
        let length = self.receiver.recv(&mut bytes).expect("a packet");
        bytes.truncate(length);
        bytes
    }

    /// Sends replies of 44 octets, so many, which all get their times.
    pub fn exchange(&self, many: usize) {
        for sequence in 0..many as u32 {
            let sent = self.send(&reply(sequence, 44, TimeFormat::Ntp));
            sent.has_its_time(&self.arrived());
        }
    }

    /// Sends the payload in a frame that is made by hand.
    pub fn send_frame(&self, socket: &PacketSocket, frame: &Made, payload: &[u8]) -> Sent {
        let to = self.receiver.local_addr().expect("an address").port();
        let frame = frame.bytes(to, payload);
        Sent::by(payload, || {
            socket.send_once(&frame).expect("send a frame");
        })
    }
}

/// A frame that no socket of UDP would send.
#[derive(Clone, Debug)]
pub struct Made {
    pub macs: ([u8; 6], [u8; 6]),
    /// VLAN tags in the frame's bytes, two at most.
    pub tags: usize,
    pub headers: IpHeaders,
    /// Whether the checksum is 0: none.
    pub is_unchecked: bool,
}

impl Made {
    /// From `rx0` to `tx0`.
    pub fn new(bench: &Bench, headers: IpHeaders) -> Self {
        Self {
            macs: (bench.rx.mac, bench.tx.mac),
            tags: 0,
            headers,
            is_unchecked: false,
        }
    }

    /// IPv4 between these addresses, with these options.
    pub fn v4((from, to): ([u8; 4], [u8; 4]), options: &[u8]) -> IpHeaders {
        let header = Ipv4Header {
            options: options.try_into().expect("whole words"),
            ..Ipv4Header::new(0, 64, IpNumber::UDP, from, to).expect("short")
        };
        IpHeaders::Ipv4(header, Ipv4Extensions::default())
    }

    /// IPv6, with these extension headers.
    pub fn v6(extensions: Ipv6Extensions) -> IpHeaders {
        let (IpAddr::V6(from), IpAddr::V6(to)) = (Family::V6.ours(), Family::V6.theirs()) else {
            unreachable!("addresses of IPv6");
        };
        let header = Ipv6Header {
            source: from.octets(),
            destination: to.octets(),
            hop_limit: 64,
            ..Ipv6Header::default()
        };
        IpHeaders::Ipv6(header, extensions)
    }

    fn bytes(&self, to: u16, payload: &[u8]) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2(self.macs.0, self.macs.1);
        let headers = self.headers.clone();
        let id = |id: u16| VlanId::try_new(id).expect("12 bits");
        let packet = match self.tags {
            0 => ethernet.ip(headers),
            1 => ethernet.single_vlan(id(7)).ip(headers),
            _ => ethernet.double_vlan(id(8), id(7)).ip(headers),
        };
        let mut bytes = Vec::new();
        let packet = packet.udp(PORT, to);
        packet.write(&mut bytes, payload).expect("a frame");
        if self.is_unchecked {
            let checksum = bytes.len() - payload.len() - 2;
            bytes[checksum..checksum + 2].fill(0);
        }
        bytes
    }
}

/// Panics if the kernel has found a wrong checksum in what a namespace received.
#[track_caller]
pub fn checksums_are_right(netns: &Netns) {
    let read = |path: &str| netns.enter(|| fs::read_to_string(path).expect("counters"));
    let v4 = read("/proc/thread-self/net/snmp");
    let mut udp = v4.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (udp.next().expect("names"), udp.next().expect("values"));
    let mut counters = names.split(' ').zip(values.split(' '));
    let wrong = counters.find(|it| it.0 == "InCsumErrors");
    assert_eq!(wrong, Some(("InCsumErrors", "0")), "{v4}");
    let v6 = read("/proc/thread-self/net/snmp6");
    let line = v6.lines().find(|line| line.starts_with("Udp6InCsumErrors"));
    let wrong = line.and_then(|line| line.split_whitespace().nth(1));
    assert_eq!(wrong, Some("0"), "{v6}");
}
