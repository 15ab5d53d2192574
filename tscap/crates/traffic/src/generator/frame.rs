//! The bytes of the frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tscap_common::generator::{HEADERS, PAYLOADS_AT};
use tscap_common::stream::{self, FIRST_PORT, StreamHeader, checksum, udp_checksum};

/// Tag protocol identifier of a VLAN (IEEE 802.1Q).
const VLAN: u16 = 0x8100;
/// Protocol number of UDP.
const UDP: u8 = 17;
/// Time to live, hop limit.
const HOPS: u8 = 64;
/// "Don't fragment" (RFC 791): with it the identification may be 0 in all
/// frames (RFC 6864, section 4.1).
const DONT_FRAGMENT: u16 = 0x4000;
/// Destination port unless one is given: discard (RFC 863).
pub const DISCARD: u16 = 9;

/// Source and destination of the same family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4.
    V4(Ipv4Addr, Ipv4Addr),
    /// IPv6.
    V6(Ipv6Addr, Ipv6Addr),
}

impl Network {
    /// Addresses for benchmarks that nobody routes: 198.18.0.1 and 198.19.0.1
    /// (RFC 2544, appendix C.2.2).
    pub const BENCHMARK_V4: Self =
        Self::V4(Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 19, 0, 1));
    /// The same for IPv6: 2001:2::1 and 2001:2:0:8000::1 (RFC 5180, section 8).
    pub const BENCHMARK_V6: Self = Self::V6(
        Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 1),
    );

    /// From what was given; `None` if the families differ. What is missing is
    /// the benchmark's.
    pub fn of(is_v6: bool, source: Option<IpAddr>, destination: Option<IpAddr>) -> Option<Self> {
        let given = [source, destination];
        let is_v6 = is_v6 || given.iter().flatten().any(IpAddr::is_ipv6);
        let (from, to) = match (is_v6, Self::BENCHMARK_V4, Self::BENCHMARK_V6) {
            (true, _, Self::V6(from, to)) => (IpAddr::V6(from), IpAddr::V6(to)),
            (_, Self::V4(from, to), _) => (IpAddr::V4(from), IpAddr::V4(to)),
            _ => return None,
        };
        match (source.unwrap_or(from), destination.unwrap_or(to)) {
            (IpAddr::V4(from), IpAddr::V4(to)) => Some(Self::V4(from, to)),
            (IpAddr::V6(from), IpAddr::V6(to)) => Some(Self::V6(from, to)),
            _ => None,
        }
    }
}

/// Which headers a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// A VLAN tag with this number.
    pub vlan: Option<u16>,
    /// IP addresses.
    pub network: Network,
    /// UDP destination port, 1 to 65,535.
    pub port: u16,
}

impl Layout {
    /// Where the payload begins, bytes.
    pub fn payload_at(&self) -> usize {
        let [plain, ..] = PAYLOADS_AT;
        let ipv6 = match self.network {
            Network::V4(..) => 0,
            Network::V6(..) => 20,
        };
        plain + ipv6 + if self.vlan.is_some() { 4 } else { 0 }
    }

    /// Least size of a frame: its payload holds the stream's header.
    pub fn least_size(&self) -> u32 {
        (self.payload_at() + stream::LENGTH) as u32
    }

    /// Bytes of the frame that the MTU counts not.
    pub fn link_header(&self) -> u32 {
        if self.vlan.is_some() { 18 } else { 14 }
    }
}

/// Ethernet addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// MAC address of the sender.
    pub source: [u8; 6],
    /// MAC address that frames are sent to.
    pub destination: [u8; 6],
}

/// Why there can be no such frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too short for headers and payload.
    #[error("a frame of {size} bytes has no room for its headers and the 22 bytes of stamps")]
    TooShort {
        /// As asked for.
        size: u32,
        /// Least size with these headers.
        least: u32,
    },
    /// Too long for the length fields of IP and UDP.
    #[error("a frame of {size} bytes is longer than an IP packet can be")]
    TooLong {
        /// As asked for.
        size: u32,
    },
}

/// All frames of a step: only flow, sequence number, stamps and checksum differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    bytes: Vec<u8>,
    payload_at: usize,
    /// Sum of the words of the UDP checksum that are the same in all frames.
    checksum: u32,
}

impl Template {
    /// Frames of `size` bytes.
    pub fn new(layout: &Layout, addresses: Addresses, size: u32) -> Result<Self, FrameError> {
        let least = layout.least_size();
        if size < least {
            return Err(FrameError::TooShort { size, least });
        }
        let payload_at = layout.payload_at();
        let udp = u16::try_from(size as usize - (payload_at - 8));
        let packet = u16::try_from(size - layout.link_header());
        let (Ok(udp), Ok(packet)) = (udp, packet) else {
            return Err(FrameError::TooLong { size });
        };

        let mut bytes = Vec::with_capacity(size as usize);
        bytes.extend(addresses.destination);
        bytes.extend(addresses.source);
        if let Some(vlan) = layout.vlan {
            bytes.extend(VLAN.to_be_bytes());
            bytes.extend(vlan.to_be_bytes());
        }
        let pseudo_header = match layout.network {
            Network::V4(from, to) => {
                bytes.extend(0x0800u16.to_be_bytes());
                bytes.extend(ipv4(from, to, packet));
                sum(&from.octets()) + sum(&to.octets())
            }
            Network::V6(from, to) => {
                bytes.extend(0x86ddu16.to_be_bytes());
                bytes.extend(ipv6(from, to, udp));
                sum(&from.octets()) + sum(&to.octets())
            }
        };
        bytes.extend(FIRST_PORT.to_be_bytes());
        bytes.extend(layout.port.to_be_bytes());
        bytes.extend(udp.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.resize(size as usize, 0);
        Ok(Self {
            bytes,
            payload_at,
            // The length stands in the pseudo header and in the header.
            checksum: pseudo_header + u32::from(UDP) + 2 * u32::from(udp) + u32::from(layout.port),
        })
    }

    /// A frame of flow 0 without a payload.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its headers, for the program, with room to spare.
    pub fn headers(&self) -> [u8; HEADERS] {
        let mut headers = [0; HEADERS];
        headers[..self.payload_at].copy_from_slice(&self.bytes[..self.payload_at]);
        headers
    }

    /// Sum of the fixed words of the UDP checksum.
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Where the payload begins.
    pub fn payload_at(&self) -> usize {
        self.payload_at
    }

    /// Makes `frame`, a copy of [`Self::bytes`], the one with this header.
    pub fn fill(&self, frame: &mut [u8], header: &StreamHeader) {
        let port = FIRST_PORT.wrapping_add(header.flow);
        let words = header.words();
        let checksum = udp_checksum(self.checksum, port, &words);
        let at = self.payload_at;
        frame[at - 8..at - 6].copy_from_slice(&port.to_be_bytes());
        frame[at - 2..at].copy_from_slice(&checksum.to_be_bytes());
        for (place, word) in frame[at..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}

fn ipv4(from: Ipv4Addr, to: Ipv4Addr, length: u16) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = HOPS;
    header[9] = UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = checksum(sum(&header).into());
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn ipv6(from: Ipv6Addr, to: Ipv6Addr, length: u16) -> [u8; 40] {
    let mut header = [0; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[6] = UDP;
    header[7] = HOPS;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
    header
}

/// Sum of big-endian words.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: Addresses = Addresses {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };

    fn layouts() -> [Layout; 4] {
        let layout = |vlan, network| Layout {
            vlan,
            network,
            port: DISCARD,
        };
        [
            layout(None, Network::BENCHMARK_V4),
            layout(Some(100), Network::BENCHMARK_V4),
            layout(None, Network::BENCHMARK_V6),
            layout(Some(4094), Network::BENCHMARK_V6),
        ]
    }

    #[test]
    fn payloads_begin_where_the_program_expects_them() {
        let least = layouts().map(|layout| layout.least_size());
        assert_eq!(layouts().map(|layout| layout.payload_at()), PAYLOADS_AT);
        assert_eq!(least, [64, 68, 84, 88]);
    }

    /// The whole sum over what a receiver sums, RFC 768 and RFC 8200 section 8.1.
    fn udp_sum(layout: &Layout, frame: &[u8]) -> u16 {
        let segment = &frame[layout.payload_at() - 8..];
        let mut padded = segment.to_vec();
        padded.resize(segment.len().next_multiple_of(2), 0);
        let addresses = match layout.network {
            Network::V4(..) => &frame[layout.payload_at() - 16..layout.payload_at() - 8],
            Network::V6(..) => &frame[layout.payload_at() - 40..layout.payload_at() - 8],
        };
        let total = sum(addresses) + sum(&padded) + 17 + segment.len() as u32;
        checksum(total.into())
    }

    #[test]
    fn checksums_are_right_for_every_layout_and_length() {
        for layout in layouts() {
            for size in [layout.least_size(), 97, 140, 1368, 1514] {
                let template = Template::new(&layout, ADDRESSES, size).unwrap();
                let mut frame = template.bytes().to_vec();
                for flow in [0, 1, 16_383] {
                    let header = StreamHeader {
                        run: 0xabcd,
                        flow,
                        seq: 0x0123_4567,
                        tsc: 0xffff_ffff_fffe,
                        tai: 0x0102_0304_0506,
                    };
                    template.fill(&mut frame, &header);
                    assert_eq!(frame.len(), size as usize);
                    assert_eq!(udp_sum(&layout, &frame), 0, "{layout:?} {size}");
                    let payload = &frame[layout.payload_at()..];
                    assert_eq!(StreamHeader::of(payload), Some(header));
                }
            }
        }
    }

    #[test]
    fn the_ipv4_header_sums_to_nothing() {
        let template = Template::new(&layouts()[1], ADDRESSES, 68).unwrap();
        assert_eq!(checksum(sum(&template.bytes()[18..38]).into()), 0);
        assert_eq!(template.bytes()[12..18], [0x81, 0, 0, 100, 8, 0]);
    }

    #[test]
    fn frames_that_cannot_be() {
        let short = Template::new(&layouts()[0], ADDRESSES, 63);
        assert_eq!(
            short,
            Err(FrameError::TooShort {
                size: 63,
                least: 64
            })
        );
        let long = |size| Template::new(&layouts()[0], ADDRESSES, size);
        assert!(long(65_549).is_ok());
        assert_eq!(long(65_550), Err(FrameError::TooLong { size: 65_550 }));
    }

    #[test]
    fn addresses_are_of_one_family() {
        let v4 = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let v6 = Some(IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!(Network::of(false, None, None), Some(Network::BENCHMARK_V4));
        assert_eq!(Network::of(true, None, None), Some(Network::BENCHMARK_V6));
        assert_eq!(Network::of(false, v4, v6), None);
        assert_eq!(Network::of(true, v4, None), None);
        let given = Network::of(false, None, v6);
        assert!(
            matches!(given, Some(Network::V6(_, Ipv6Addr::LOCALHOST))),
            "{given:?}"
        );
    }
}
