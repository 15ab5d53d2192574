//! The questions to rtnetlink about interfaces.

use std::{fmt, io};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage};
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{LinkAttribute, LinkMessage},
};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use super::{Link, NetdevError};
use crate::netlink::{self, NetlinkError};

/// How often a listing that changed meanwhile is started again.
const LIST_ATTEMPTS: u32 = 16;

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) enum Query<'a> {
    /// One interface by its name, 1 to 15 bytes.
    Name(&'a str),
    /// One interface by its index, 1 to `i32::MAX`.
    Index(u32),
    All,
}

impl fmt::Display for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "interface {}", name.escape_debug()),
            Self::Index(index) => write!(f, "interface number {index}"),
            Self::All => f.write_str("all interfaces"),
        }
    }
}

impl Query<'_> {
    fn error(self, error: impl Into<NetlinkError>) -> NetdevError {
        NetdevError::Ask {
            object: self.to_string(),
            source: io::Error::from(error.into()),
        }
    }
}

/// Asks, and returns the interfaces found: at most one unless all were asked for.
pub(super) fn ask(query: Query<'_>) -> Result<Vec<Link>, NetdevError> {
    ask_by(&open(query)?, query)
}

/// A socket, which asks about the namespace in which it was opened.
pub(super) fn open(query: Query<'_>) -> Result<Socket, NetdevError> {
    Socket::new(NETLINK_ROUTE).map_err(|error| query.error(error))
}

/// As [`ask`], by a socket that may have been asked before: it gives whole answers only.
pub(super) fn ask_by(socket: &Socket, query: Query<'_>) -> Result<Vec<Link>, NetdevError> {
    for sequence in 1..=LIST_ATTEMPTS {
        match netlink::ask(socket, &request(query, sequence), sequence) {
            Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::ENODEV) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(query.error(error)),
            Ok(answer) if answer.is_inconsistent => {}
            Ok(answer) => {
                let links = answer.messages.iter().map(|message| Link::parse(message));
                let links: Result<_, _> = links.collect();
                return links.map_err(|error| query.error(error));
            }
        }
    }
    Err(NetdevError::Unstable {
        attempts: LIST_ATTEMPTS,
    })
}

/// The bytes of an `RTM_GETLINK`. `IFLA_EXT_MASK` is left out: the kernel then
/// sends the counters, and spares us the virtual functions, without which one interface
/// takes about 2 KiB.
fn request(query: Query<'_>, sequence: u32) -> Vec<u8> {
    let mut message = LinkMessage::default();
    let mut flags = NLM_F_REQUEST;
    match query {
        Query::Name(name) => message.attributes = vec![LinkAttribute::IfName(name.to_owned())],
        Query::Index(index) => message.header.index = index,
        Query::All => flags |= NLM_F_DUMP,
    }
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::GetLink(message));
    request.header.flags = flags;
    request.header.sequence_number = sequence;
    netlink::bytes(request)
}
