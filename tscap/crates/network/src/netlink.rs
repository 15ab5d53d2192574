//! One question to netlink and its answer.

use std::io;

use netlink_packet_core::{
    DecodeError, NLM_F_DUMP_INTR, NLMSG_ALIGNTO, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkMessage, NetlinkSerializable, parse_i32,
};
use netlink_sys::{Socket, SocketAddr};
use thiserror::Error;

/// Receive buffer, bytes: more than the kernel puts into one datagram of an answer
/// (32 KiB, `netlink_recvmsg`, net/netlink/af_netlink.c).
pub(super) const ANSWER_MAX: usize = 64 * 1024;
/// `NLMSG_MIN_TYPE` (`linux/netlink.h`): lower types are netlink's own.
const NLMSG_MIN_TYPE: u16 = 0x10;

/// Why a question has no answer.
#[derive(Debug, Error)]
pub(super) enum NetlinkError {
    /// A system call failed.
    #[error(transparent)]
    Exchange(#[from] io::Error),
    /// The kernel answered with an error.
    #[error(transparent)]
    Refused(io::Error),
    /// An answer longer than any that the kernel is known to send.
    #[error("an answer of {bytes} bytes was cut")]
    Cut {
        /// Bytes that the answer would have had.
        bytes: usize,
    },
    /// An answer that is not netlink.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

impl From<NetlinkError> for io::Error {
    fn from(error: NetlinkError) -> Self {
        match error {
            NetlinkError::Exchange(error) | NetlinkError::Refused(error) => error,
            other => Self::other(other),
        }
    }
}

/// The messages of an answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub messages: Vec<Vec<u8>>,
    /// The kernel says that what it lists changed while it did.
    pub is_inconsistent: bool,
    /// Nothing more will come.
    is_complete: bool,
    /// Errno sent in place of an answer, or at the end of a listing.
    refusal: Option<i32>,
}

/// The bytes of a message.
pub(super) fn bytes<T: NetlinkSerializable>(mut message: NetlinkMessage<T>) -> Vec<u8> {
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// Sends a request with the number `sequence` to the kernel, and receives its answer.
pub(super) fn ask(socket: &Socket, request: &[u8], sequence: u32) -> Result<Answer, NetlinkError> {
    // Port 0 is the kernel. It works on the request within this call, and on the rest of
    // a listing within each receive, so no receive can wait for an answer that does not
    // come.
    retry(|| socket.send_to(request, &SocketAddr::new(0, 0), 0))?;
    let mut answer = Answer::default();
    while !answer.is_complete {
        let mut datagram = Vec::with_capacity(ANSWER_MAX);
        let (bytes, from) = retry(|| socket.recv_from(&mut datagram, libc::MSG_TRUNC))?;
        if bytes > datagram.len() {
            return Err(NetlinkError::Cut { bytes });
        }
        if from.port_number() == 0 {
            answer.take(&datagram, sequence)?;
        }
    }
    match answer.refusal {
        Some(errno) => Err(NetlinkError::Refused(io::Error::from_raw_os_error(errno))),
        None => Ok(answer),
    }
}

/// Hands over the messages of one datagram.
pub(super) fn each(
    datagram: &[u8],
    mut take: impl FnMut(&NetlinkBuffer<&[u8]>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest)?;
        take(&message)?;
        let length = (message.length() as usize).next_multiple_of(NLMSG_ALIGNTO as usize);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

impl Answer {
    /// Takes in the messages of one datagram that answer request `sequence`.
    fn take(&mut self, datagram: &[u8], sequence: u32) -> Result<(), DecodeError> {
        each(datagram, |message| {
            if message.sequence_number() == sequence && !self.is_complete {
                self.take_message(message)
            } else {
                Ok(())
            }
        })
    }

    fn take_message(&mut self, message: &NetlinkBuffer<&[u8]>) -> Result<(), DecodeError> {
        let payload = message.payload();
        self.is_inconsistent |= message.flags() & NLM_F_DUMP_INTR != 0;
        match message.message_type() {
            // Both start with an int: 0, or an errno made negative.
            NLMSG_ERROR | NLMSG_DONE => {
                let code = payload.get(..4).map_or(Ok(0), parse_i32)?;
                self.refusal = (code != 0).then_some(code.saturating_neg());
                self.is_complete = true;
            }
            NLMSG_MIN_TYPE.. => {
                self.messages.push(payload.to_vec());
                // A single answer comes as a single message.
                self.is_complete = message.flags() & (libc::NLM_F_MULTI as u16) == 0;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Repeats a system call that a signal interrupted.
pub(super) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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

    const MULTI: u16 = libc::NLM_F_MULTI as u16;
    const NEWLINK: u16 = libc::RTM_NEWLINK;

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

    fn answer(datagram: &[u8]) -> Answer {
        let mut answer = Answer::default();
        answer.take(datagram, 1).expect("well formed");
        answer
    }

    #[test]
    fn an_error_ends_the_answer() {
        let errno = (-libc::ENODEV).to_ne_bytes();
        let answer = answer(&message(NLMSG_ERROR, 0, 1, &errno));
        assert!(answer.is_complete);
        assert_eq!(answer.refusal, Some(libc::ENODEV));
    }

    #[test]
    fn an_acknowledgement_is_no_error() {
        let answer = answer(&message(NLMSG_ERROR, 0, 1, &[0; 4]));
        assert!(answer.is_complete && answer.refusal.is_none());
    }

    #[test]
    fn a_listing_ends_with_done_and_may_be_inconsistent() {
        let mut datagram = message(NEWLINK, MULTI, 1, &[0; 16]);
        datagram.extend(message(NEWLINK, MULTI | NLM_F_DUMP_INTR, 1, &[0; 16]));
        let mut answer = answer(&datagram);
        assert!(!answer.is_complete);
        answer
            .take(&message(NLMSG_DONE, MULTI, 1, &[0; 4]), 1)
            .expect("well formed");
        assert!(answer.is_complete && answer.is_inconsistent);
        assert_eq!((answer.messages.len(), answer.refusal), (2, None));
    }

    #[test]
    fn a_single_message_is_a_whole_answer() {
        assert!(answer(&message(NEWLINK, 0, 1, &[0; 16])).is_complete);
    }

    #[test]
    fn answers_to_other_requests_are_passed_over() {
        assert!(!answer(&message(NLMSG_DONE, 0, 7, &[0; 4])).is_complete);
    }

    #[test]
    fn rubbish_is_an_error() {
        for rubbish in [&[1u8][..], &[0; 16], &[0xff; 40]] {
            assert!(Answer::default().take(rubbish, 0).is_err(), "{rubbish:?}");
        }
    }
}
