//! AF_PACKET sockets (packet(7)): sending whole frames, promiscuous mode, and a program that
//! sees what an interface sends.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// A packet socket that hooks into nothing and receives no frame: its protocol is 0.
///
/// # Errors
/// EPERM without CAP_NET_RAW.
pub(super) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option of packet sockets, whose value is `T` (packet(7)).
pub(super) fn set_option<T: Copy>(socket: &OwnedFd, option: c_int, value: T) -> io::Result<()> {
    set_option_of(socket, libc::SOL_PACKET, option, value)
}

/// Sets an option of a level, whose value is `T` (socket(7)).
pub(super) fn set_option_of<T: Copy>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the kernel reads the value, of the length given.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Binds a packet socket to an interface, and to frames of a protocol (`linux/if_ether.h`): of
/// none if it is 0.
pub(super) fn bind(socket: &OwnedFd, ifindex: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all zero is a valid address; what matters is set below.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = ifindex.cast_signed();
    // SAFETY: the address is a whole `sockaddr_ll`.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    match bound {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A program at the tap of an interface: it runs for each frame that a packet socket would get,
/// and the socket gets none. It ends with the process.
#[derive(Debug)]
pub struct Tap(Mutex<Option<OwnedFd>>);

impl Tap {
    /// Has `program`, a filter of sockets that refuses every frame, run on the interface with
    /// number `ifindex` in this thread's network namespace.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; ENODEV if there is no such interface.
    pub fn attach(program: BorrowedFd<'_>, ifindex: u32) -> io::Result<Self> {
        // It receives nothing before it is bound.
        let socket = socket()?;
        let program = program.as_raw_fd();
        set_option_of(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, program)?;
        bind(&socket, ifindex, libc::ETH_P_ALL as u16)?;
        Ok(Self(Mutex::new(Some(socket))))
    }

    /// Ends it now.
    pub fn detach(&self) {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(socket.take());
    }
}

/// A socket that sends out of one interface and receives nothing.
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Past the queueing discipline, and past what captures sent frames, of the interface
    /// with number `ifindex` in this thread's network namespace.
    ///
    /// # Errors
    /// EPERM without CAP_NET_RAW; ENODEV if there is no such interface.
    pub fn open(ifindex: u32) -> io::Result<Self> {
        let socket = socket()?;
        let bypass: c_int = 1;
        set_option(&socket, libc::PACKET_QDISC_BYPASS, bypass)?;
        Self::bound(socket, ifindex)
    }

    /// The same through the network stack, as programs send.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn through_stack(ifindex: u32) -> io::Result<Self> {
        Self::bound(socket()?, ifindex)
    }

    fn bound(socket: OwnedFd, ifindex: u32) -> io::Result<Self> {
        bind(&socket, ifindex, 0)?;
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
