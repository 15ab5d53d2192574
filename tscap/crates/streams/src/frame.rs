//! Finds the stream header of `tscap gen` in a captured frame.

use etherparse::err::Layer;
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice, UdpHeader, UdpSlice};
use serde::{Deserialize, Serialize};
use tscap_common::stream::{FIRST_PORT, LENGTH, MAGIC, MOST_FLOWS, StreamHeader};

/// What a captured frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A frame of a stream.
    Stream(StreamHeader, Checksum),
    /// It has no stream header.
    Other,
    /// It has, or may have, a stream header that is not to be trusted.
    Malformed(Malformed),
}

/// What the UDP checksum says of a frame of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The frame is as it was sent.
    Right,
    /// It was sent without one (RFC 768: zero; over IPv4 only).
    Absent,
    /// It can't be known: the frame was cut by the snaplen.
    Unknown,
}

/// Why a frame is not counted in its stream. RFC 7680 (section 2.5) counts a
/// corrupted frame as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Malformed {
    /// Cut by the snaplen before it can be told whether it has a stream header.
    Cut,
    /// The lengths in its headers contradict its own.
    Length,
    /// The UDP checksum is wrong.
    Checksum,
    /// The UDP source port is not that of the flow in the stream header.
    Port,
}

/// Looks into an Ethernet frame of which `captured` was captured and that had
/// `origlen` bytes: up to three VLAN tags (802.1Q, 802.1ad), IPv4 or IPv6 with
/// their options and extension headers, UDP. Fragments are other frames.
pub fn content(captured: &[u8], origlen: u32) -> Content {
    let is_cut = captured.len() < origlen as usize;
    let Ok(sliced) = LaxSlicedPacket::from_ethernet(captured) else {
        return cut_or_other(is_cut);
    };
    content_of(&sliced, is_cut)
}

/// The same of a packet that is taken apart already; `is_cut` if not all of it was captured.
pub fn content_of(sliced: &LaxSlicedPacket<'_>, is_cut: bool) -> Content {
    let (Some(net), Some(TransportSlice::Udp(udp))) = (&sliced.net, &sliced.transport) else {
        let is_in_the_way = sliced.stop_err.as_ref().is_some_and(|(_, layer)| {
            !matches!(
                layer,
                Layer::TcpHeader | Layer::Icmpv4 | Layer::Icmpv6 | Layer::Igmp | Layer::Arp
            )
        });
        return cut_or_other(is_cut && is_in_the_way);
    };
    let flow = udp.source_port().wrapping_sub(FIRST_PORT);
    if u32::from(flow) >= MOST_FLOWS {
        return Content::Other;
    }
    let Some(header) = StreamHeader::of(udp.payload()) else {
        let seen = udp.payload();
        let mut pairs = MAGIC.to_be_bytes().into_iter().zip(seen);
        let may_be_ours = seen.len() < LENGTH
            && usize::from(udp.length()) >= UdpHeader::LEN + LENGTH
            && pairs.all(|(magic, seen)| magic == *seen);
        return cut_or_other(is_cut && may_be_ours);
    };
    match checksum(net, udp, is_cut) {
        _ if header.flow != flow => Content::Malformed(Malformed::Port),
        Ok(checksum) => Content::Stream(header, checksum),
        Err(malformed) => Content::Malformed(malformed),
    }
}

fn cut_or_other(is_cut: bool) -> Content {
    if is_cut {
        Content::Malformed(Malformed::Cut)
    } else {
        Content::Other
    }
}

fn checksum(
    net: &LaxNetSlice<'_>,
    udp: &UdpSlice<'_>,
    is_cut: bool,
) -> Result<Checksum, Malformed> {
    let length = usize::from(udp.length());
    if length > udp.slice().len() && is_cut {
        return Ok(Checksum::Unknown);
    }
    if length != udp.slice().len() {
        return Err(Malformed::Length);
    }
    let (header, payload) = (udp.to_header(), udp.payload());
    let computed = match net {
        LaxNetSlice::Ipv4(_) if header.checksum == 0 => return Ok(Checksum::Absent),
        LaxNetSlice::Ipv4(ip) => {
            let ip = ip.header();
            header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), payload)
        }
        LaxNetSlice::Ipv6(ip) => {
            let ip = ip.header();
            header.calc_checksum_ipv6_raw(ip.source(), ip.destination(), payload)
        }
        LaxNetSlice::Arp(_) => return Err(Malformed::Length),
    };
    match computed {
        Ok(computed) if computed == header.checksum => Ok(Checksum::Right),
        Ok(_) => Err(Malformed::Checksum),
        Err(_) => Err(Malformed::Length),
    }
}

#[cfg(test)]
mod tests;
