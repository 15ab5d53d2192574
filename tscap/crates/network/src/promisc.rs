//! Promiscuous mode for as long as a guard lives.

use std::io;
use std::os::fd::OwnedFd;

use crate::packet;

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
        // An index over i32::MAX turns negative, and no interface has it.
        let request = libc::packet_mreq {
            mr_ifindex: index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let membership = packet::socket().map_err(failed)?;
        packet::set_option(&membership, libc::PACKET_ADD_MEMBERSHIP, request).map_err(failed)?;
        Ok(Self {
            _membership: membership,
        })
    }
}
