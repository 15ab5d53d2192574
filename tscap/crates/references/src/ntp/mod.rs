//! An NTP server as a reference: the protocol (RFC 5905, RFC 9769) and a feed-forward clock of the
//! server's time. Pure: packets and stamps are handed in, nothing is sent here.
//!
//! - `packet`: what is on the wire;
//! - `datagram`: the packet in a frame; `stamp`: when that passed;
//! - `exchange`: requests and their replies, each matched or with a named [`Reject`];
//! - `poller`: when a client may send;
//! - `clock`: the feed-forward clock of the exchanges (Ridoux, Veitch, Broomhead);
//! - `lines`: the server's time by the exchanges of a log, from both sides;
//! - `served`: the same packets from the server's side.

mod clock;
mod datagram;
mod exchange;
mod lines;
mod packet;
mod poller;
mod served;
mod stamp;

pub(crate) use clock::PHI_PPB;
pub use clock::{NtpClock, NtpKnown, NtpPoint, NtpStatus};
pub use datagram::Datagram;
pub use exchange::{Exchange, Exchanges, Received, Reject, Rejects};
pub use lines::{NoLines, NtpLines, ServerTime};
pub use packet::{Interleaved, KissCode, Leap, Packet, PacketError, request};
pub use poller::{Expired, Kissed, LONGEST_POLL, Poller};
pub use served::{MOST_OPEN, Served, Service};
pub use stamp::PacketStamp;
pub use tscap_protocol::NtpTime;

/// The port of NTP servers (RFC 5905, section 7.2).
pub const PORT: u16 = 123;

#[cfg(test)]
mod fixtures;
