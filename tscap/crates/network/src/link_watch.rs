//! Interfaces that appear, change and go, as rtnetlink tells of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{DecodeError, NetlinkBuffer, NlasIterator};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::LinkHeader;
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use crate::netdev::Link;
use crate::netlink::{self, ANSWER_MAX};
use crate::receive_room::make_room;

/// `RTNLGRP_LINK` (`linux/rtnetlink.h`).
const RTNLGRP_LINK: u32 = 1;
/// Receive buffer, bytes: room for some thousand messages of about 4 KiB each with the
/// kernel's own bookkeeping, of which an interface causes about five when it is made.
const BUFFER: usize = 16 << 20;
/// Bytes of `struct ifinfomsg` (`linux/rtnetlink.h`), ahead of the attributes.
const HEADER_LEN: usize = size_of::<libc::ifinfomsg>();

/// What has become of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// It is new, or something of it has changed: its name, its state, its addresses.
    Changed(Box<Link>),
    /// It is gone, or has moved to another network namespace.
    Gone {
        /// Its number here, which the next interface may get.
        index: u32,
        /// Its name here.
        name: String,
    },
    /// Events were lost for lack of room: the interfaces have to be listed anew.
    Missed,
}

/// Hears of the interfaces of the network namespace in which the thread was that made it.
#[derive(Debug)]
pub struct LinkWatch(Socket);

impl LinkWatch {
    /// Hears of what happens from now on: list the interfaces after this, so that none is
    /// missed in between.
    ///
    /// # Errors
    /// If the socket can't be opened.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        // Beyond the machine's limit, which needs CAP_NET_ADMIN.
        make_room(&socket, BUFFER)?;
        socket.set_non_blocking(true)?;
        socket.bind_auto()?;
        socket.add_membership(RTNLGRP_LINK)?;
        Ok(Self(socket))
    }

    /// What has happened since the last call, in its order. Never waits.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has happened; else what the socket or a message is like.
    pub fn read(&self) -> io::Result<Vec<LinkEvent>> {
        let mut events = Vec::new();
        loop {
            let mut datagram = Vec::with_capacity(ANSWER_MAX);
            match netlink::retry(|| self.0.recv_from(&mut datagram, 0)) {
                // Not from the kernel.
                Ok((_, from)) if from.port_number() != 0 => {}
                Ok(_) => netlink::each(&datagram, |message| {
                    events.extend(event(message)?);
                    Ok(())
                })
                .map_err(io::Error::other)?,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    events.push(LinkEvent::Missed);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !events.is_empty() => {
                    return Ok(events);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What a message says of an interface as such. A bridge tells of its ports by messages of
/// its own family, a wireless driver of its events by one without the interface's
/// attributes (`wireless_nlevent`, net/wireless/wext-core.c).
fn event(message: &NetlinkBuffer<&[u8]>) -> Result<Option<LinkEvent>, DecodeError> {
    let is_gone = match message.message_type() {
        libc::RTM_NEWLINK => false,
        libc::RTM_DELLINK => true,
        _ => return Ok(None),
    };
    let payload = message.payload();
    if LinkHeader::parse(payload)?.interface_family != AddressFamily::Unspec {
        return Ok(None);
    }
    for attribute in NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default()) {
        if attribute?.kind() == libc::IFLA_WIRELESS {
            return Ok(None);
        }
    }
    let link = Link::parse(payload)?;
    Ok(Some(if is_gone {
        LinkEvent::Gone {
            index: link.index,
            name: link.name,
        }
    } else {
        LinkEvent::Changed(Box::new(link))
    }))
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, NetlinkMessage};
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::link::{LinkAttribute, LinkMessage};

    use super::*;

    fn link(change: impl FnOnce(&mut LinkMessage)) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.attributes = vec![LinkAttribute::IfName("veth1".into()), LinkAttribute::Mtu(9)];
        change(&mut message);
        message
    }

    fn heard(message: RouteNetlinkMessage) -> Option<LinkEvent> {
        let bytes = netlink::bytes(NetlinkMessage::from(message));
        let mut heard = None;
        netlink::each(&bytes, |message| {
            heard = event(message)?;
            Ok(())
        })
        .unwrap();
        heard
    }

    #[test]
    fn interfaces_come_and_go() {
        let Some(LinkEvent::Changed(it)) = heard(RouteNetlinkMessage::NewLink(link(|_| {}))) else {
            panic!("a new link");
        };
        assert_eq!((it.index, it.name.as_str(), it.mtu), (7, "veth1", 9));
        let gone = LinkEvent::Gone {
            index: 7,
            name: "veth1".into(),
        };
        assert_eq!(
            heard(RouteNetlinkMessage::DelLink(link(|_| {}))),
            Some(gone)
        );
    }

    #[test]
    fn what_is_not_about_the_interface_as_such_is_passed_over() {
        let port = link(|it| it.header.interface_family = AddressFamily::Bridge);
        assert_eq!(heard(RouteNetlinkMessage::DelLink(port)), None);
        let wireless = link(|it| {
            let event = DefaultNla::new(libc::IFLA_WIRELESS, vec![0; 8]);
            it.attributes.push(LinkAttribute::Other(event));
        });
        assert_eq!(heard(RouteNetlinkMessage::NewLink(wireless)), None);
        assert_eq!(heard(RouteNetlinkMessage::GetLink(link(|_| {}))), None);
    }

    #[test]
    fn nothing_heard_would_block() {
        let watch = LinkWatch::new().unwrap();
        // The machine's own interfaces may change at any time.
        while let Ok(events) = watch.read() {
            assert!(!events.is_empty());
        }
        let error = watch.read().err().map(|error| error.kind());
        assert!(matches!(error, None | Some(io::ErrorKind::WouldBlock)));
    }
}
