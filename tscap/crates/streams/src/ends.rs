//! Who sends a packet to whom.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket};

/// Both ends. Ports are 0 of protocols other than TCP and UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Protocol number of the IP header.
    pub protocol: u8,
    /// Where it comes from.
    pub source: IpAddr,
    /// Port of the source; 0 of protocols without ports.
    pub source_port: u16,
    /// Where it goes to.
    pub destination: IpAddr,
    /// Port of the destination; 0 of protocols without ports.
    pub destination_port: u16,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Bytes of an Ethernet frame in which its ends are: two VLAN tags, IPv6 without extension
/// headers, ports; a multiple of four.
pub const ENDS_WITHIN: usize = 68;

impl Ends {
    /// Those of an Ethernet frame by its first bytes; `None` unless it is IP. Ports are 0 where
    /// these bytes do not reach them, and of fragments.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let packet = LaxSlicedPacket::from_ethernet(bytes).ok()?;
        let net = packet.net.as_ref()?;
        let (source, destination): (IpAddr, IpAddr) = match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let ends = (header.source_addr(), header.destination_addr());
                (ends.0.into(), ends.1.into())
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let ends = (header.source_addr(), header.destination_addr());
                (ends.0.into(), ends.1.into())
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let inside = net.ip_payload_ref()?;
        let protocol = inside.ip_number.0;
        let [source_port, destination_port] = match (protocol, inside.payload) {
            (TCP | UDP, &[a, b, c, d, ..]) if !inside.fragmented => {
                [[a, b], [c, d]].map(u16::from_be_bytes)
            }
            _ => [0, 0],
        };
        Some(Self {
            protocol,
            source,
            source_port,
            destination,
            destination_port,
        })
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.source, self.destination);
        let name = match self.protocol {
            TCP => "tcp",
            UDP => "udp",
            1 => return write!(f, "{from} → {to} icmp"),
            47 => return write!(f, "{from} → {to} gre"),
            58 => return write!(f, "{from} → {to} icmp6"),
            other => return write!(f, "{from} → {to} protocol {other}"),
        };
        let from = SocketAddr::new(from, self.source_port);
        let to = SocketAddr::new(to, self.destination_port);
        write!(f, "{from} → {to} {name}")
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    #[test]
    fn the_first_bytes_tell_the_ends() {
        let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let mut frame = Vec::new();
        let (vlan, tcp) = (
            link.double_vlan(5.try_into().unwrap(), 6.try_into().unwrap()),
            [7; 100],
        );
        let packet = vlan.ipv6([1; 16], [2; 16], 64).tcp(443, 50_000, 1, 2);
        packet.write(&mut frame, &tcp).unwrap();
        let (one, other) = (
            "101:101:101:101:101:101:101:101",
            "202:202:202:202:202:202:202:202",
        );
        let name = |bytes: &[u8]| Ends::of(bytes).map(|ends| ends.to_string());
        let expected = format!("[{one}]:443 → [{other}]:50000 tcp");
        assert_eq!(name(&frame), Some(expected.clone()));
        assert_eq!(name(&frame[..ENDS_WITHIN]), Some(expected));
        // Without the ports, and without an address.
        let cut = name(&frame[..ENDS_WITHIN - 6]).unwrap();
        assert_eq!(cut, format!("[{one}]:0 → [{other}]:0 tcp"));
        assert_eq!(name(&frame[..30]), None);
        assert_eq!(name(&[]), None);
        let arp = [&[2; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(name(&arp), None);
    }
}
