//! What holds a program on an interface.

use std::io;
use std::os::fd::BorrowedFd;

use super::entry::HeldEntry;
use tscap_network::bpf::{InterfaceLink, TracingLink};
use tscap_network::clsact::{Clsact, Side};
use tscap_network::netdev::{Link, LinkReader};
use tscap_network::packet::Tap;

/// Attaches a program by a filter of clsact.
pub type ByFilter<'a> = dyn FnMut(BorrowedFd<'_>, &Link, Side) -> Result<Clsact, Refusal> + 'a;

/// Why a hook was refused.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// What holds a program where it is; the program is detached on drop.
#[derive(Debug)]
pub enum Held {
    /// A link.
    Link(InterfaceLink),
    /// A filter.
    Filter(Clsact),
    /// A link to a tracepoint, for the interface that is read so.
    Tracepoint(TracingLink, LinkReader),
    /// A packet socket, for the interface that is read so.
    Tap(Tap, LinkReader),
    /// A link to the program whose entry it is at.
    Entry(Box<HeldEntry>),
}

/// Whether an interface with a program is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// With this number.
    Numbered(u32),
    /// With the number that it had, as far as this can tell.
    AsBefore,
    /// It is gone, or the program from it.
    Gone,
}

impl Held {
    /// Whether the interface is there. Its number changes by a move to another namespace
    /// where that is taken; what a filter or a tracepoint shows ends with any move.
    pub fn look(&self) -> Presence {
        match self {
            Self::Link(link) => match link.ifindex() {
                Ok(Some(ifindex)) => Presence::Numbered(ifindex),
                _ => Presence::Gone,
            },
            Self::Filter(filter) => match filter.is_attached() {
                Ok(true) => Presence::AsBefore,
                _ => Presence::Gone,
            },
            Self::Tracepoint(_, interface) | Self::Tap(_, interface) => match interface.read() {
                Ok(None) => Presence::Gone,
                _ => Presence::AsBefore,
            },
            // What is at XDP is looked at in the interface's namespace.
            Self::Entry(_) => Presence::AsBefore,
        }
    }

    /// Detaches the program. That the interface is gone is no error.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn detach(&self) -> io::Result<()> {
        match self {
            Self::Link(link) => match link.detach() {
                Err(error) if error.raw_os_error() != Some(libc::ENOLINK) => Err(error),
                _ => Ok(()),
            },
            Self::Filter(filter) => filter.detach().map_err(io::Error::other),
            Self::Tracepoint(link, _) => {
                link.detach();
                Ok(())
            }
            Self::Tap(tap, _) => {
                tap.detach();
                Ok(())
            }
            Self::Entry(entry) => {
                entry.detach();
                Ok(())
            }
        }
    }
}
