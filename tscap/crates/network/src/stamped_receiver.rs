//! An AF_PACKET socket that receives frames with the stamp of the kernel's stack, as tcpdump
//! has it.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::packet;
use tscap_time::RealNs;

/// Room for the control message with the stamp, in words, so that it is aligned.
const CONTROL_WORDS: usize = 8;

/// The socket.
#[derive(Debug)]
pub struct StampedReceiver(OwnedFd);

impl StampedReceiver {
    /// Receives what interface number `ifindex` in this thread's network namespace receives
    /// and sends, into at most so many bytes of memory. The kernel begins to stamp received
    /// frames some moments later (`net_enable_timestamp`, net/core/dev.c).
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW and CAP_NET_ADMIN; ENODEV if there is no such interface.
    pub fn open(ifindex: u32, buffer_bytes: usize) -> io::Result<Self> {
        let socket = packet::socket()?;
        let bytes = c_int::try_from(buffer_bytes).unwrap_or(c_int::MAX);
        packet::set_option_of(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)?;
        let on: c_int = 1;
        packet::set_option_of(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, on)?;
        packet::bind(&socket, ifindex, libc::ETH_P_ALL as u16)?;
        Ok(Self(socket))
    }

    /// The next frame, as much of it as there is room for: bytes that were copied, and its
    /// stamp. `None` if none has come.
    ///
    /// # Errors
    /// ENETDOWN once the interface is down.
    pub fn receive(&self, frame: &mut [u8]) -> io::Result<Option<(usize, Option<RealNs>)>> {
        let mut part = libc::iovec {
            iov_base: frame.as_mut_ptr().cast::<c_void>(),
            iov_len: frame.len(),
        };
        let mut control = [0u64; CONTROL_WORDS];
        // SAFETY: all zero is a valid header without address; what matters is set below.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header points to one part and to room for control messages, both of
        // the lengths given, which outlive the call.
        let length =
            unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            };
        };
        Ok(Some((length, stamp(&message))))
    }
}

/// The stamp among the control messages of a received message.
fn stamp(message: &libc::msghdr) -> Option<RealNs> {
    // SAFETY: the kernel has filled in the control messages and their length.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give whole headers or null; the data of a
        // message of this kind is a `timespec`, which need not be aligned.
        unsafe {
            let kind = ((*header).cmsg_level, (*header).cmsg_type);
            if kind == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time = libc::CMSG_DATA(header)
                    .cast::<libc::timespec>()
                    .read_unaligned();
                let seconds = u64::try_from(time.tv_sec).ok()?;
                let rest = u64::try_from(time.tv_nsec).ok()?;
                return seconds
                    .checked_mul(1_000_000_000)?
                    .checked_add(rest)
                    .map(RealNs);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused() {
        let error = StampedReceiver::open(i32::MAX as u32, 1 << 20).unwrap_err();
        // ENODEV as root, EPERM as anybody else.
        let number = error.raw_os_error();
        assert!(
            matches!(number, Some(libc::ENODEV | libc::EPERM)),
            "{error}"
        );
    }
}
