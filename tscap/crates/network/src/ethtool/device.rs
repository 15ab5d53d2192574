//! The socket and the ioctl that carry every request.

use std::{
    ffi::{c_char, c_int},
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use super::EthtoolError;

/// A socket, and the interface that requests through it are about.
pub(super) struct Device<'a> {
    name: &'a str,
    ifr_name: [c_char; libc::IFNAMSIZ],
    socket: OwnedFd,
}

impl<'a> Device<'a> {
    /// A socket for requests on `name` in this thread's network namespace.
    pub(super) fn open(name: &'a str) -> Result<Self, EthtoolError> {
        let mut ifr_name = [0; libc::IFNAMSIZ];
        // The last byte stays zero.
        if name.is_empty() || name.len() >= ifr_name.len() || name.contains('\0') {
            return Err(EthtoolError::Name {
                name: name.to_owned(),
            });
        }
        for (to, from) in ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        Ok(Self {
            name,
            ifr_name,
            socket: any_socket().map_err(|source| EthtoolError::Socket {
                name: name.to_owned(),
                source,
            })?,
        })
    }

    /// Sends the request in `words`, which starts with the command, and lets
    /// the kernel answer into it. `operation` names it in the error.
    ///
    /// # Safety
    /// `words` must be as long as the structure of the command together with
    /// whatever the kernel appends to it for the lengths given in it.
    pub(super) unsafe fn request(
        &self,
        operation: &'static str,
        words: &mut [u32],
    ) -> Result<(), EthtoolError> {
        // SAFETY: this function's contract.
        unsafe { self.ioctl(libc::SIOCETHTOOL, operation, words) }
    }

    /// The same by another ioctl of an interface, whose structure is in `words`.
    ///
    /// # Safety
    /// `words` must be as long as the structure of the ioctl.
    pub(super) unsafe fn ioctl(
        &self,
        number: libc::Ioctl,
        operation: &'static str,
        words: &mut [u32],
    ) -> Result<(), EthtoolError> {
        let mut request = libc::ifreq {
            ifr_name: self.ifr_name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_data: words.as_mut_ptr().cast(),
            },
        };
        // SAFETY: `request` is an ifreq with a closed name, and its data pointer
        // is valid for what the command reads and writes (this function's
        // contract).
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), number, &mut request) };
        if result < 0 {
            return Err(EthtoolError::Request {
                operation,
                name: self.name.to_owned(),
                source: io::Error::last_os_error(),
            });
        }
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }
}

/// Any socket takes these ioctls; a kernel without IPv4 still has netlink.
fn any_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
        .or_else(|_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC))
}

fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
