//! The UDP datagram in a frame.

use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice, UdpHeader};

/// A datagram, as far as it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// The beginning of its payload.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Looks into the beginning of an Ethernet frame: VLAN tags, IPv4 or IPv6 with options and
    /// extension headers, UDP. Gives up to `most` bytes of its payload. `None` of anything else,
    /// of fragments, and where the frame was cut before these.
    pub fn of(frame: &'a [u8], most: usize) -> Option<Self> {
        let sliced = LaxSlicedPacket::from_ethernet(frame).ok()?;
        let (Some(net), Some(TransportSlice::Udp(udp))) = (sliced.net, sliced.transport) else {
            return None;
        };
        let (from, to): (IpAddr, IpAddr) = match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                )
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                (
                    header.source_addr().into(),
                    header.destination_addr().into(),
                )
            }
            LaxNetSlice::Arp(_) => return None,
        };
        // Behind the datagram an Ethernet frame may be padded.
        let length = usize::from(udp.length()).checked_sub(UdpHeader::LEN)?;
        Some(Self {
            from: SocketAddr::new(from, udp.source_port()),
            to: SocketAddr::new(to, udp.destination_port()),
            payload: udp.payload().get(..length.min(most))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::super::fixtures::reply;
    use super::*;

    fn frame(payload: &[u8], is_tagged: bool, is_v6: bool) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let mut frame = Vec::new();
        match (is_tagged, is_v6) {
            (false, false) => ethernet
                .ipv4([10, 9, 0, 2], [10, 9, 0, 1], 64)
                .udp(123, 40_000)
                .write(&mut frame, payload),
            (true, false) => ethernet
                .single_vlan(etherparse::VlanId::try_new(7).unwrap())
                .ipv4([10, 9, 0, 2], [10, 9, 0, 1], 64)
                .udp(123, 40_000)
                .write(&mut frame, payload),
            (_, true) => ethernet
                .ipv6([1; 16], [2; 16], 64)
                .udp(123, 40_000)
                .write(&mut frame, payload),
        }
        .unwrap();
        frame
    }

    #[test]
    fn a_reply_is_found_behind_tags_and_before_what_pads() {
        for (is_tagged, is_v6) in [(false, false), (true, false), (false, true)] {
            let mut frame = frame(&reply(), is_tagged, is_v6);
            frame.extend([0; 20]);
            let found = Datagram::of(&frame, 96).unwrap();
            assert_eq!((found.from.port(), found.to.port()), (123, 40_000));
            assert_eq!(found.from.is_ipv6(), is_v6);
            assert_eq!(found.payload, reply());
        }
    }

    #[test]
    fn the_beginning_of_a_long_one_is_enough() {
        let payload = [&reply()[..], &[0; 200]].concat();
        let frame = frame(&payload, false, false);
        let found = Datagram::of(&frame[..42 + 96], 96).unwrap();
        assert_eq!(found.payload, &payload[..96]);
        assert_eq!(Datagram::of(&frame[..42 + 95], 96), None);
    }

    #[test]
    fn a_short_one_is_given_as_it_is() {
        let frame = frame(&[1, 2, 3], false, false);
        assert_eq!(Datagram::of(&frame, 96).unwrap().payload, [1, 2, 3]);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(
            at in 0usize..90, byte in any::<u8>(), length in 0usize..90,
        ) {
            let mut frame = frame(&reply(), false, false);
            frame[at.min(89)] = byte;
            let _ = Datagram::of(&frame[..length.min(frame.len())], 96);
        }
    }
}
