//! From the bytes of a frame to the flow that it belongs to.

use std::net::IpAddr;

use etherparse::{
    EtherType, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice, UdpSlice,
};
use tscap_common::stream::StreamHeader;

use super::key::{Ends, FlowId};
use super::quic::QuicHeader;
use super::rtp::RtpHeader;
use super::schema::FlowBy;
use super::tcp::{Segment, Timestamps};
use tscap_streams::{Checksum, Content, Malformed, content_of};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Of a flow.
    Flow(Found),
    /// A part of an IP packet, which has not all that flows are by.
    Fragment,
    /// Neither IPv4 nor IPv6.
    NonIp,
    /// Without what flows are by.
    WithoutKey,
    /// Not to be trusted, or cut by the snaplen before what flows are by.
    Malformed(Malformed),
}

/// A packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The flow.
    pub id: FlowId,
    /// The two outer VLAN tags.
    pub vlans: [Option<u16>; 2],
    /// It was inside VXLAN or GRE.
    pub is_inner: bool,
    /// What else it says.
    pub carries: Carries,
}

/// What a packet says beside its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Nothing that is looked at.
    Nothing,
    /// Bytes of TCP.
    Tcp(Segment),
    /// A datagram, which may be one of QUIC.
    Datagram(QuicHeader),
    /// A header of RTP.
    Rtp(RtpHeader),
    /// That of `tscap gen`, and what the checksum says of it.
    Gen(StreamHeader, Checksum),
}

/// IANA's port of VXLAN (RFC 7348).
const VXLAN_PORT: u16 = 4_789;
const VXLAN_HEADER: usize = 8;
const GRE: u8 = 47;
/// Ethernet in GRE (RFC 7637).
const ETHERNET_IN_GRE: u16 = 0x6558;

/// Looks into an Ethernet frame of which `captured` was captured and that had `origlen` bytes:
/// up to three VLAN tags, IPv4 or IPv6 with their options and extension headers. With
/// `looks_inside`, a packet inside VXLAN or GRE is the one that counts.
#[inline]
pub fn look(captured: &[u8], origlen: u32, by: FlowBy, looks_inside: bool) -> Look {
    let frame = Frame { captured, origlen };
    let is_cut = frame.is_cut();
    let Ok(packet) = LaxSlicedPacket::from_ethernet(captured) else {
        return broken(is_cut);
    };
    let vlans = vlans(&packet);
    let inside = looks_inside.then(|| inside(&packet)).flatten();
    match inside {
        None => look_at(&packet, frame, by, vlans, false),
        Some(Ok(inner)) => look_at(&inner, frame, by, vlans, true),
        Some(Err(NoPacket::NonIp)) => Look::NonIp,
        Some(Err(NoPacket::Broken)) => broken(is_cut),
    }
}

/// A frame, of which not all may have been captured.
#[derive(Clone, Copy)]
struct Frame<'a> {
    captured: &'a [u8],
    origlen: u32,
}

impl Frame<'_> {
    fn is_cut(&self) -> bool {
        self.captured.len() < self.origlen as usize
    }

    /// Where in it a part of it begins.
    fn place(&self, part: &[u8]) -> usize {
        part.as_ptr().addr() - self.captured.as_ptr().addr()
    }

    /// Where a packet ends whose header says that so many bytes follow `from`. An aggregate that
    /// is longer than the field can say has 0 there: it ends with its frame. It never ends
    /// behind that. Keys go by the same rule (`tscap_common::key`).
    fn end(&self, from: usize, says: u16) -> usize {
        match says {
            0 => self.origlen as usize,
            says => (from + usize::from(says)).min(self.origlen as usize),
        }
    }
}

fn broken(is_cut: bool) -> Look {
    Look::Malformed(if is_cut {
        Malformed::Cut
    } else {
        Malformed::Length
    })
}

fn vlans(packet: &LaxSlicedPacket<'_>) -> [Option<u16>; 2] {
    let mut ids = packet.link_exts.iter().filter_map(|it| match it {
        LaxLinkExtSlice::Vlan(tag) => Some(tag.vlan_identifier().value()),
        _ => None,
    });
    [ids.next(), ids.next()]
}

fn look_at(
    packet: &LaxSlicedPacket<'_>,
    frame: Frame<'_>,
    by: FlowBy,
    vlans: [Option<u16>; 2],
    is_inner: bool,
) -> Look {
    let is_cut = frame.is_cut();
    let found = |id, carries| {
        Look::Flow(Found {
            id,
            vlans,
            is_inner,
            carries,
        })
    };
    let ip = match packet.net.as_ref().map(IpFields::of) {
        Some(Some(ip)) => ip,
        None if packet.stop_err.is_some() => return broken(is_cut),
        Some(None) | None => return Look::NonIp,
    };
    if by == FlowBy::Dscp {
        return found(FlowId::Dscp(ip.dscp), Carries::Nothing);
    }
    if ip.is_fragment {
        return Look::Fragment;
    }
    if packet.transport.is_none() && packet.stop_err.is_some() {
        return broken(is_cut);
    }
    let protocol = packet.net.as_ref().and_then(LaxNetSlice::ip_payload_ref);
    let ends = |ports: Option<[u16; 2]>| {
        let [source_port, destination_port] = ports.unwrap_or_default();
        Ends {
            protocol: protocol.map_or(0, |it| it.ip_number.0),
            source: ip.source,
            source_port,
            destination: ip.destination,
            destination_port,
        }
    };
    match (by, &packet.transport) {
        (FlowBy::Gen, _) => match content_of(packet, is_cut) {
            Content::Stream(header, checksum) => {
                let (run, flow) = (header.run, header.flow);
                found(FlowId::Gen { run, flow }, Carries::Gen(header, checksum))
            }
            Content::Other => Look::WithoutKey,
            Content::Malformed(malformed) => Look::Malformed(malformed),
        },
        (FlowBy::Rtp, Some(TransportSlice::Udp(udp))) => match RtpHeader::of(udp.payload()) {
            Some(header) => {
                let (ends, ssrc) = (ends(Some(ports_of(udp))), header.ssrc);
                found(FlowId::Rtp { ends, ssrc }, Carries::Rtp(header))
            }
            None if is_cut && udp.payload().len() < super::rtp::HEADER => broken(is_cut),
            None => Look::WithoutKey,
        },
        (FlowBy::Rtp, _) => Look::WithoutKey,
        (_, Some(TransportSlice::Udp(udp))) => found(
            FlowId::FiveTuple(ends(Some(ports_of(udp)))),
            Carries::Datagram(QuicHeader::of(udp.payload())),
        ),
        (_, Some(TransportSlice::Tcp(tcp))) => {
            let ports = [tcp.source_port(), tcp.destination_port()];
            let carries = segment(packet, frame, tcp).map_or(Carries::Nothing, Carries::Tcp);
            found(FlowId::FiveTuple(ends(Some(ports))), carries)
        }
        _ => found(FlowId::FiveTuple(ends(None)), Carries::Nothing),
    }
}

/// Fields that IPv4 and IPv6 have in common.
struct IpFields {
    source: IpAddr,
    destination: IpAddr,
    /// 0 to 63.
    dscp: u8,
    is_fragment: bool,
}

impl IpFields {
    /// `None` for ARP.
    fn of(net: &LaxNetSlice<'_>) -> Option<Self> {
        match net {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                Some(Self {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    dscp: header.dcp().value(),
                    is_fragment: ip.is_payload_fragmented(),
                })
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                Some(Self {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    dscp: header.traffic_class() >> 2,
                    is_fragment: ip.is_payload_fragmented(),
                })
            }
            LaxNetSlice::Arp(_) => None,
        }
    }
}

fn ports_of(udp: &UdpSlice<'_>) -> [u16; 2] {
    [udp.source_port(), udp.destination_port()]
}

/// `None` if the packet ends before its headers do.
fn segment(packet: &LaxSlicedPacket<'_>, frame: Frame<'_>, tcp: &TcpSlice<'_>) -> Option<Segment> {
    let end = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            frame.end(frame.place(header.slice()), header.total_len())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let body = frame.place(header.slice()) + header.slice().len();
            frame.end(body, header.payload_length())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let headers = frame.place(tcp.slice()) + tcp.header_len();
    Some(Segment {
        seq: tcp.sequence_number(),
        payload: u32::try_from(end.checked_sub(headers)?).ok()?,
        is_syn: tcp.syn(),
        is_fin: tcp.fin(),
        ack: tcp.ack().then(|| tcp.acknowledgment_number()),
        timestamps: Timestamps::of(tcp.options()),
    })
}

/// What a tunnel's packet holds.
type Inside<'a> = Result<LaxSlicedPacket<'a>, NoPacket>;

/// Why it holds no packet that counts.
enum NoPacket {
    NonIp,
    Broken,
}

/// `None` if it is no tunnel's packet.
fn inside<'a>(packet: &LaxSlicedPacket<'a>) -> Option<Inside<'a>> {
    match (&packet.transport, &packet.net) {
        (Some(TransportSlice::Udp(udp)), _) if udp.destination_port() == VXLAN_PORT => {
            let payload = udp.payload();
            let header = payload.first_chunk::<VXLAN_HEADER>();
            Some(match header.map(|header| header[0] & 0x08 != 0) {
                Some(true) => ethernet(&payload[VXLAN_HEADER..]),
                // No valid identifier: no VXLAN.
                Some(false) => return None,
                None => Err(NoPacket::Broken),
            })
        }
        (None, Some(net)) => {
            let ip = net.ip_payload_ref()?;
            (ip.ip_number.0 == GRE && !ip.fragmented).then(|| gre(ip.payload))
        }
        _ => None,
    }
}

fn ethernet(bytes: &[u8]) -> Inside<'_> {
    LaxSlicedPacket::from_ethernet(bytes).map_err(|_| NoPacket::Broken)
}

/// RFC 2784 and 2890: checksum, key and sequence number where the flags say so.
fn gre(bytes: &[u8]) -> Inside<'_> {
    let Some([flags, version, kind @ ..]) = bytes.first_chunk::<4>() else {
        return Err(NoPacket::Broken);
    };
    if version & 0x07 != 0 || flags & 0x40 != 0 {
        return Err(NoPacket::NonIp);
    }
    let fields = (flags & 0xb0).count_ones() as usize;
    let Some(inner) = bytes.get(4 + 4 * fields..) else {
        return Err(NoPacket::Broken);
    };
    match u16::from_be_bytes(*kind) {
        ETHERNET_IN_GRE => ethernet(inner),
        kind if [EtherType::IPV4.0, EtherType::IPV6.0].contains(&kind) => {
            Ok(LaxSlicedPacket::from_ether_type(EtherType(kind), inner))
        }
        _ => Err(NoPacket::NonIp),
    }
}

#[cfg(test)]
mod tests;
