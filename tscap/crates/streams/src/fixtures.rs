//! Frames of `tscap gen` made by hand, for tests.

pub mod capture;

use etherparse::{
    EtherType, Ethernet2Header, IpNumber, Ipv4Header, Ipv4Options, Ipv6Header, SingleVlanHeader,
    UdpHeader, VlanId,
};
use tscap_common::stream::{FIRST_PORT, LENGTH, StreamHeader};

/// Which headers a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// An IPv4 header without options.
    V4,
    /// IPv4 with options.
    V4Options,
    /// An IPv6 header without extensions.
    V6,
    /// A tag of 802.1ad, one of 802.1Q, IPv6.
    TaggedV6,
}

const PADDING: usize = 40;

impl Headers {
    /// All of them.
    pub fn each_kind() -> Vec<Self> {
        vec![Self::V4, Self::V4Options, Self::V6, Self::TaggedV6]
    }

    /// Where the payload begins.
    pub fn payload_at(self) -> usize {
        match self {
            Self::V4 => 42,
            Self::V4Options => 50,
            Self::V6 => 62,
            Self::TaggedV6 => 70,
        }
    }

    /// A frame of 40 bytes more than its headers.
    pub fn frame(self, header: &StreamHeader) -> Vec<u8> {
        let words = header.words().into_iter();
        let mut payload: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
        payload.resize(LENGTH + PADDING, 0);
        let port = FIRST_PORT + header.flow;
        let length = UdpHeader::LEN + payload.len();
        let (ip_type, ip, udp) = if matches!(self, Self::V4 | Self::V4Options) {
            let mut ip = Ipv4Header::new(
                length as u16,
                64,
                IpNumber::UDP,
                [198, 51, 100, 1],
                [198, 51, 100, 2],
            )
            .unwrap();
            if self == Self::V4Options {
                // Eight of "no operation".
                ip.options = Ipv4Options::from([1; 8]);
                ip.set_payload_len(length).unwrap();
            }
            ip.header_checksum = ip.calc_header_checksum();
            let udp = UdpHeader::with_ipv4_checksum(port, 9, &ip, &payload).unwrap();
            (EtherType::IPV4, ip.to_bytes().to_vec(), udp)
        } else {
            let ip = Ipv6Header {
                payload_length: length as u16,
                next_header: IpNumber::UDP,
                hop_limit: 64,
                source: [0x20; 16],
                destination: [0x21; 16],
                ..Ipv6Header::default()
            };
            let udp = UdpHeader::with_ipv6_checksum(port, 9, &ip, &payload).unwrap();
            (EtherType::IPV6, ip.to_bytes().to_vec(), udp)
        };
        let mut link = Ethernet2Header {
            destination: [2; 6],
            source: [4; 6],
            ether_type: ip_type,
        }
        .to_bytes()
        .to_vec();
        if self == Self::TaggedV6 {
            link.truncate(12);
            link.extend(u16::to_be_bytes(EtherType::PROVIDER_BRIDGING.0));
            for (id, ether_type) in [(5, EtherType::VLAN_TAGGED_FRAME), (7, ip_type)] {
                let tag = SingleVlanHeader {
                    vlan_id: VlanId::try_new(id).unwrap(),
                    ether_type,
                    ..SingleVlanHeader::default()
                };
                link.extend(tag.to_bytes());
            }
        }
        [link, ip, udp.to_bytes().to_vec(), payload].concat()
    }
}

/// A header with recognisable stamps.
pub fn header(flow: u16, seq: u32) -> StreamHeader {
    StreamHeader {
        run: 0x1234,
        flow,
        seq,
        tsc: 0x0102_0304_0506,
        tai: 0x0a0b_0c0d_0e0f,
    }
}
