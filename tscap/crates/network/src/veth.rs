//! Making a veth pair and setting its ends up, over rtnetlink.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use crate::netlink;

/// Makes `name` in this thread's namespace and its other end, `peer`, in
/// another; both down.
pub fn make_pair(name: &str, peer: &str, peer_netns: &File) -> io::Result<()> {
    let mut other = LinkMessage::default();
    other.attributes = vec![
        LinkAttribute::IfName(peer.into()),
        LinkAttribute::NetNsFd(peer_netns.as_raw_fd()),
    ];
    let mut this = LinkMessage::default();
    this.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]),
    ];
    ask(this, NLM_F_CREATE | NLM_F_EXCL)
}

/// Sets the interface with number `ifindex` in this thread's namespace up.
pub fn set_up(ifindex: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = ifindex;
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    ask(link, 0)
}

fn ask(link: LinkMessage, flags: u16) -> io::Result<()> {
    const SEQUENCE: u32 = 1;
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewLink(link));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    request.header.sequence_number = SEQUENCE;
    let socket = Socket::new(NETLINK_ROUTE)?;
    netlink::ask(&socket, &netlink::bytes(request), SEQUENCE)?;
    Ok(())
}
