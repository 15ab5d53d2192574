//! One question to rtnetlink and its answer.

use std::{fmt, io};

use netlink_packet_core::{
    DecodeError, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_ALIGNTO, NLMSG_DONE,
    NLMSG_ERROR, NetlinkBuffer, NetlinkMessage, parse_i32,
};
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{LinkAttribute, LinkMessage},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::{Link, NetdevError};

/// Receive buffer in bytes. The kernel sends a listing in pieces of at most
/// 32 KiB (`netlink_recvmsg`, net/netlink/af_netlink.c), and one interface takes
/// about 2 KiB as long as its virtual functions are not asked for.
const ANSWER_MAX: usize = 64 * 1024;

/// How often a listing that changed meanwhile is started again.
const LIST_ATTEMPTS: u32 = 16;

/// `RTM_NEWLINK` (`linux/rtnetlink.h`): the answer to `RTM_GETLINK`.
const RTM_NEWLINK: u16 = libc::RTM_NEWLINK;

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) enum Query<'a> {
    /// One interface by its name, 1 to 15 bytes.
    Name(&'a str),
    /// One interface by its index, 1 to `i32::MAX`.
    Index(u32),
    /// Every interface.
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

/// Asks, and returns the interfaces found: at most one unless all were asked for.
pub(super) fn ask(query: Query<'_>) -> Result<Vec<Link>, NetdevError> {
    let object = || query.to_string();
    let socket = Socket::new(NETLINK_ROUTE).map_err(|source| NetdevError::Socket {
        object: object(),
        source,
    })?;
    for sequence in 1..=LIST_ATTEMPTS {
        let exchange = |source| NetdevError::Exchange {
            object: object(),
            source,
        };
        let request = request(query, sequence);
        // Port 0 is the kernel. It works on the request within this call, and
        // on the rest of a listing within each receive, so no receive can wait
        // for an answer that does not come.
        retry(|| socket.send_to(&request, &SocketAddr::new(0, 0), 0)).map_err(exchange)?;

        let mut answer = Answer::default();
        while !answer.complete {
            let mut datagram = Vec::with_capacity(ANSWER_MAX);
            let (bytes, from) =
                retry(|| socket.recv_from(&mut datagram, libc::MSG_TRUNC)).map_err(exchange)?;
            if bytes > datagram.len() {
                return Err(NetdevError::Cut {
                    object: object(),
                    bytes,
                });
            }
            if from.port_number() == 0 {
                answer
                    .take(&datagram, sequence)
                    .map_err(|source| NetdevError::Malformed {
                        object: object(),
                        source,
                    })?;
            }
        }
        match answer.refusal {
            Some(libc::ENODEV) => return Ok(Vec::new()),
            Some(errno) => {
                return Err(NetdevError::Refused {
                    object: object(),
                    source: io::Error::from_raw_os_error(errno),
                });
            }
            None if answer.inconsistent => {}
            None => return Ok(answer.links),
        }
    }
    Err(NetdevError::Unstable {
        attempts: LIST_ATTEMPTS,
    })
}

/// The bytes of an `RTM_GETLINK`. `IFLA_EXT_MASK` is left out: the kernel then
/// sends the counters, and spares us the virtual functions.
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
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    bytes
}

/// What has come in so far.
#[derive(Default)]
struct Answer {
    links: Vec<Link>,
    /// Nothing more will come.
    complete: bool,
    /// The kernel says that interfaces came or went while it listed them.
    inconsistent: bool,
    /// Errno sent in place of an answer, or at the end of a listing.
    refusal: Option<i32>,
}

impl Answer {
    /// Takes in the messages of one datagram that answer request `sequence`.
    fn take(&mut self, datagram: &[u8], sequence: u32) -> Result<(), DecodeError> {
        let mut rest = datagram;
        while !rest.is_empty() && !self.complete {
            let message = NetlinkBuffer::new_checked(rest)?;
            if message.sequence_number() == sequence {
                self.take_message(&message)?;
            }
            let length = (message.length() as usize).next_multiple_of(NLMSG_ALIGNTO as usize);
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    fn take_message(&mut self, message: &NetlinkBuffer<&[u8]>) -> Result<(), DecodeError> {
        let payload = message.payload();
        self.inconsistent |= message.flags() & NLM_F_DUMP_INTR != 0;
        match message.message_type() {
            RTM_NEWLINK => {
                self.links.push(Link::parse(payload)?);
                // A single interface comes as a single message.
                self.complete = message.flags() & (libc::NLM_F_MULTI as u16) == 0;
            }
            // Both start with an int: 0, or an errno made negative.
            NLMSG_ERROR | NLMSG_DONE => {
                let code = payload.get(..4).map_or(Ok(0), parse_i32)?;
                self.refusal = (code != 0).then_some(code.saturating_neg());
                self.complete = true;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Repeats a system call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One netlink message with `payload`, padded.
    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(16 + payload.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn an_error_ends_the_answer() {
        let mut answer = Answer::default();
        let errno = (-libc::ENODEV).to_ne_bytes();
        answer
            .take(&message(NLMSG_ERROR, 0, 1, &errno), 1)
            .expect("well formed");
        assert!(answer.complete);
        assert_eq!(answer.refusal, Some(libc::ENODEV));
    }

    #[test]
    fn a_listing_ends_with_done_and_may_be_inconsistent() {
        let mut answer = Answer::default();
        let multi = libc::NLM_F_MULTI as u16;
        let mut datagram = message(RTM_NEWLINK, multi, 1, &[0; 16]);
        datagram.extend(message(RTM_NEWLINK, multi | NLM_F_DUMP_INTR, 1, &[0; 16]));
        answer.take(&datagram, 1).expect("well formed");
        assert!(!answer.complete);
        answer
            .take(&message(NLMSG_DONE, multi, 1, &[0; 4]), 1)
            .expect("well formed");
        assert!(answer.complete && answer.inconsistent);
        assert_eq!((answer.links.len(), answer.refusal), (2, None));
    }

    #[test]
    fn answers_to_other_requests_are_passed_over() {
        let mut answer = Answer::default();
        answer
            .take(&message(NLMSG_DONE, 0, 7, &[0; 4]), 1)
            .expect("well formed");
        assert!(!answer.complete);
    }

    #[test]
    fn rubbish_is_an_error() {
        for rubbish in [&[1u8][..], &[0; 16], &[0xff; 40]] {
            assert!(Answer::default().take(rubbish, 0).is_err(), "{rubbish:?}");
        }
    }
}
