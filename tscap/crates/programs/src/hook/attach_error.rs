//! Why a program could not be attached.

use std::io;

use super::attach_point::AttachPoint;
use super::entry::NoEntry;
use super::held::Refusal;
use super::kfunc::NoKfunc;
use super::load_error::LoadError;
use tscap_network::netdev::AttachedXdp;

/// Why a program could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Another program is there already.
    #[error("{interface} already has XDP program {} attached", xdp.ids())]
    Busy {
        /// The interface.
        interface: String,
        /// What is attached.
        xdp: AttachedXdp,
    },
    /// Another program is there, and nothing can be attached to its entry.
    #[error("no fentry on the XDP program of {interface}")]
    NoEntry {
        /// The interface.
        interface: String,
        /// Why.
        source: NoEntry,
    },
    /// The program could not be loaded for it.
    #[error("cannot load the program of {interface} for {}", at.name())]
    Load {
        /// The interface.
        interface: String,
        /// The hook tried.
        at: AttachPoint,
        /// Why.
        source: Box<LoadError>,
    },
    /// The interface's network namespace is not known.
    #[error("cannot tell the network namespace of {interface}")]
    Namespace {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// No program there can ask for hardware stamps.
    #[error("cannot take hardware stamps on {interface}")]
    NoHardwareStamps {
        /// The interface.
        interface: String,
        /// Why.
        source: NoHardwareStamps,
    },
    /// The kernel refused.
    #[error("cannot attach to {interface} at {}", at.name())]
    Refused {
        /// The interface.
        interface: String,
        /// The hook tried.
        at: AttachPoint,
        /// Why.
        source: Refusal,
    },
}

/// Why no program at an interface can ask for hardware stamps.
#[derive(Debug, thiserror::Error)]
pub enum NoHardwareStamps {
    /// Its driver tells XDP programs none.
    #[error("its driver tells XDP programs none")]
    Driver,
    /// The kernel has no function for it.
    #[error(transparent)]
    Kernel(#[from] NoKfunc),
}

impl AttachError {
    /// The operating system's error at the root, if there is one.
    pub fn os_error(&self) -> Option<i32> {
        match self {
            Self::Busy { .. } | Self::NoEntry { .. } | Self::NoHardwareStamps { .. } => None,
            Self::Load { source, .. } => source.os_error(),
            Self::Namespace { source, .. } => source.raw_os_error(),
            Self::Refused { source, .. } => source
                .downcast_ref::<io::Error>()
                .and_then(io::Error::raw_os_error),
        }
    }

    /// Whether another hook may do: the driver can't (rather than may not, or not now), for
    /// want of native XDP, or not at this MTU, with these features or so few queues (veth:
    /// ENOSPC); or somebody else is there, or on the bond above (EEXIST, or EBUSY for a link;
    /// `dev_xdp_attach` in net/core/dev.c), perhaps since the interface was looked at.
    pub(super) fn leaves_others(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::NoEntry { .. } => true,
            Self::Load { .. } | Self::Namespace { .. } | Self::NoHardwareStamps { .. } => false,
            Self::Refused { .. } => matches!(
                self.os_error(),
                Some(
                    libc::EOPNOTSUPP
                        | libc::EINVAL
                        | libc::ERANGE
                        | libc::EMSGSIZE
                        | libc::ENOSPC
                        | libc::EEXIST
                        | libc::EBUSY
                )
            ),
        }
    }
}
