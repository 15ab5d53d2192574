//! Network interfaces, asked of the kernel over rtnetlink.
//!
//! Every call opens its own socket, so the answer is about the network
//! namespace that the calling thread is in at that moment. `/sys/class/net` is
//! not used: after `setns` it still shows the namespace it was mounted in.

mod exchange;
mod layout;
mod parse;

use std::{fmt, io};

use netlink_sys::Socket;

use self::exchange::{Query, ask, ask_by, open};
pub use self::layout::{Layout, Obstacle};

/// Longest interface name in bytes: `IFNAMSIZ` (16, `linux/if.h`) less the
/// closing zero.
pub const NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// `ARPHRD_ETHER` (`linux/if_arp.h`): a [`Link::link_type`] whose frames start
/// with an Ethernet header.
pub const ARPHRD_ETHER: u16 = libc::ARPHRD_ETHER;

/// One interface, as it was when the kernel answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Number of the interface in its namespace, from 1.
    pub index: u32,
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Kind of a virtual interface ("veth", "vlan", ...); `None` for a device
    /// with a driver of its own.
    pub kind: Option<String>,
    /// Description given by the administrator (`ip link set … alias`).
    pub alias: Option<String>,
    /// Hardware address, where it has the 6 bytes of a MAC address.
    pub mac: Option<[u8; 6]>,
    /// Largest payload of a frame in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Set up by the administrator (`IFF_UP`).
    pub is_up: bool,
    /// Frames can arrive: the interface is up and has carrier
    /// (`IFF_LOWER_UP`, which the kernel computes as it answers; the
    /// operational state lags behind it).
    pub has_carrier: bool,
    /// Header type of its frames, an `ARPHRD_` number (`linux/if_arp.h`).
    pub link_type: u16,
    /// Whether it is a tunnel whose `header_ops` put the outer header before each packet: of
    /// GRE without one remote end.
    pub builds_outer: bool,
    /// Whether what it receives becomes its own only behind the hooks of devices: of an ipvlan
    /// in mode l3s.
    pub receives_behind_hooks: bool,
    /// How many users keep it promiscuous; 0 means it is not.
    pub promiscuity: u32,
    /// Receive queues that the device was made with, at least 1.
    pub rx_queues: u32,
    /// Number of the interface that it is a part of: a bond, a team, a bridge, a VRF.
    pub master: Option<u32>,
    /// Number of the interface of this namespace that it sends through: of a VLAN, a macvlan
    /// or a tunnel; of a veth its peer.
    pub lower: Option<u32>,
    /// Receive counters, if the kernel sent them.
    pub stats: Option<RxStats>,
    /// Send counters, if the kernel sent them.
    pub tx_stats: Option<TxStats>,
    /// XDP programs attached; `None` if there are none.
    pub xdp: Option<AttachedXdp>,
}

impl Link {
    /// Whether it is the loopback, which receives all that it sends.
    pub fn is_loopback(&self) -> bool {
        self.link_type == libc::ARPHRD_LOOPBACK
    }
}

/// Receive counters of an interface since it was made: the receive side of
/// `struct rtnl_link_stats64` (`linux/if_link.h`). Which of them a driver
/// counts is its own choice; one that it does not count stays 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStats {
    /// `rx_packets`: good packets that the host received, also those that it
    /// dropped later.
    pub packets: u64,
    /// `rx_bytes`: their bytes, for Ethernet without the checksum.
    pub bytes: u64,
    /// `rx_errors`: bad packets of every kind.
    pub errors: u64,
    /// `rx_dropped`: received but not processed (no memory, unknown protocol),
    /// on some hardware also those that the address filter refused. Counted by
    /// the driver and, behind XDP, by the network stack.
    pub dropped: u64,
    /// `rx_missed_errors`: dropped by the device because the host gave it no
    /// buffer in time. Hardware only.
    pub missed: u64,
    /// `rx_fifo_errors`: overflow events of old hardware, queue overflows of
    /// some software devices.
    pub fifo: u64,
    /// `rx_over_errors`: packets that did not fit the host's buffers, or
    /// overflow events.
    pub no_buffer: u64,
    /// `rx_nohandler`: dropped by the stack because the interface is not meant
    /// to receive (the idle link of a bond, for instance).
    pub no_handler: u64,
}

/// Send counters of an interface since it was made, of the same structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxStats {
    /// `tx_packets`: packets sent; of an aggregate each segment, or one, as the driver
    /// counts.
    pub packets: u64,
    /// `tx_bytes`: their bytes.
    pub bytes: u64,
    /// `tx_dropped`: dropped on their way to the driver or in it. Those that a queueing
    /// discipline dropped are counted there.
    pub dropped: u64,
}

/// What the kernel says is attached to the XDP hooks of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedXdp {
    /// Where.
    pub mode: AttachedMode,
    /// Ids of the programs: one, or with [`AttachedMode::Multi`] all of them
    /// in the order native, generic, offloaded.
    pub program_ids: Vec<u32>,
}

impl AttachedXdp {
    /// The ids as text, with commas between them.
    pub fn ids(&self) -> String {
        let ids: Vec<_> = self.program_ids.iter().map(u32::to_string).collect();
        ids.join(", ")
    }
}

/// Hooks on which XDP programs are found (`XDP_ATTACHED_*`, `linux/if_link.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachedMode {
    /// In the driver (`XDP_ATTACHED_DRV`).
    Native,
    /// In the network stack (`XDP_ATTACHED_SKB`).
    Generic,
    /// On the device (`XDP_ATTACHED_HW`).
    Offloaded,
    /// On more than one of them (`XDP_ATTACHED_MULTI`).
    Multi,
}

impl fmt::Display for AttachedMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
            Self::Offloaded => "offloaded",
            Self::Multi => "multi",
        })
    }
}

/// Why the kernel could not be asked about interfaces.
#[derive(Debug, thiserror::Error)]
pub enum NetdevError {
    /// No answer to the question.
    #[error("cannot ask the kernel about {object} over rtnetlink")]
    Ask {
        /// What was asked about.
        object: String,
        /// Why.
        source: io::Error,
    },
    /// Interfaces came and went during each of several attempts to list them.
    #[error("the list of interfaces changed during each of {attempts} attempts to read it")]
    Unstable {
        /// How often it was tried.
        attempts: u32,
    },
}

/// The interface called `name` in this thread's network namespace, or `None`.
///
/// As for `ip link`, `name` may also be an alternative name of up to
/// [`NAME_MAX`] bytes; [`Link::name`] then holds the real one.
///
/// # Errors
/// See [`NetdevError`]; a name that cannot exist is not an error but `None`.
pub fn by_name(name: &str) -> Result<Option<Link>, NetdevError> {
    if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
        return Ok(None);
    }
    Ok(ask(Query::Name(name))?.pop())
}

/// The interface numbered `index` in this thread's network namespace, or `None`.
///
/// # Errors
/// See [`NetdevError`].
pub fn by_index(index: u32) -> Result<Option<Link>, NetdevError> {
    // The kernel numbers them with a positive int and takes 0 for "not given".
    if index == 0 || i32::try_from(index).is_err() {
        return Ok(None);
    }
    Ok(ask(Query::Index(index))?.pop())
}

/// One interface, looked at again and again, also by threads in other namespaces.
pub struct LinkReader {
    socket: Socket,
    index: u32,
}

impl LinkReader {
    /// Of the interface numbered `index` in this thread's network namespace.
    ///
    /// # Errors
    /// See [`NetdevError`].
    pub fn here(index: u32) -> Result<Self, NetdevError> {
        let socket = open(Query::Index(index))?;
        Ok(Self { socket, index })
    }

    /// The interface with that number there now, or `None`.
    ///
    /// # Errors
    /// See [`NetdevError`].
    pub fn read(&self) -> Result<Option<Link>, NetdevError> {
        Ok(ask_by(&self.socket, Query::Index(self.index))?.pop())
    }
}

impl fmt::Debug for LinkReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LinkReader");
        shown.field("index", &self.index).finish_non_exhaustive()
    }
}

/// All interfaces of this thread's network namespace, ordered by index.
///
/// # Errors
/// See [`NetdevError`].
pub fn all() -> Result<Vec<Link>, NetdevError> {
    let mut links = ask(Query::All)?;
    links.sort_by_key(|link| link.index);
    Ok(links)
}
