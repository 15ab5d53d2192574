//! Sending whole frames through an AF_PACKET socket (packet(7)).

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket that sends out of one interface, past its queueing discipline, and
/// receives nothing.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// For the interface with number `ifindex` in this thread's network
    /// namespace.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; ENODEV if there is no such interface.
    pub fn open(ifindex: u32) -> io::Result<Self> {
        // Protocol 0: no frame is received.
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let bypass: c_int = 1;
        // SAFETY: the option's value is an int of the length given.
        let set = unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const bypass).cast(),
                size_of::<c_int>() as libc::socklen_t,
            )
        };
        // SAFETY: all zero is a valid address; what matters is set below.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = ifindex.cast_signed();
        // SAFETY: the address is a whole `sockaddr_ll`.
        let bound = unsafe {
            libc::bind(
                fd,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if set < 0 || bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(socket))
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// ENOBUFS if the interface did not take it, ENETDOWN or ENXIO if it is down
    /// or gone.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer is valid for the length given.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Sends these frames, in order, by one system call, and says how many went
    /// before the first that did not.
    ///
    /// # Errors
    /// As [`Self::send`], if it was the first one already.
    pub fn send_many(&self, frames: &[Vec<u8>]) -> io::Result<usize> {
        let mut parts: Vec<libc::iovec> = frames
            .iter()
            .map(|frame| libc::iovec {
                iov_base: frame.as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = parts
            .iter_mut()
            .map(|part| {
                // SAFETY: all zero is a valid header without address and control.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        // SAFETY: each header points to one part, each part to one frame, and all
        // outlive the call; the kernel only reads the frames.
        let sent = unsafe {
            libc::sendmmsg(
                self.0.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as u32,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused() {
        let error = PacketSocket::open(i32::MAX as u32).unwrap_err();
        // ENODEV as root, EPERM as anybody else.
        let number = error.raw_os_error();
        assert!(
            matches!(number, Some(libc::ENODEV | libc::EPERM)),
            "{error}"
        );
    }
}
