//! Promiscuous mode for as long as a guard lives.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// Keeps an interface promiscuous until dropped. The kernel counts its users
/// and takes this one off when the socket closes, so also when the process dies
/// in whatever way, and when the interface is deleted first.
#[derive(Debug)]
pub struct Promiscuous {
    _membership: OwnedFd,
}

/// Why an interface could not be made promiscuous.
#[derive(Debug, thiserror::Error)]
pub enum PromiscuousError {
    /// No privilege to open a packet socket.
    #[error("cannot make interface number {index} promiscuous without CAP_NET_RAW")]
    Privilege {
        /// The interface.
        index: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// Anything else (`ENODEV`: the interface is gone).
    #[error("cannot make interface number {index} promiscuous")]
    Kernel {
        /// The interface.
        index: u32,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Promiscuous {
    /// Makes interface `index` of this thread's network namespace promiscuous.
    ///
    /// # Errors
    /// No CAP_NET_RAW, or no such interface.
    pub fn enable(index: u32) -> Result<Self, PromiscuousError> {
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(libc::EPERM) => PromiscuousError::Privilege { index, source },
            _ => PromiscuousError::Kernel { index, source },
        };
        // Protocol 0: the socket hooks into nothing and gets no packets.
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: a new descriptor that nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };

        let request = libc::packet_mreq {
            // An index over i32::MAX turns negative, and no interface has it.
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // SAFETY: the kernel reads one packet_mreq of the length given.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                size_of_val(&request) as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        Ok(Self {
            _membership: socket,
        })
    }
}
