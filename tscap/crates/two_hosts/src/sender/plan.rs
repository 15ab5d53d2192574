//! What a session-sender is asked to do.

use std::net::SocketAddr;
use std::time::Duration;

use tscap_capture::ClockChoice;
use tscap_network::namespaces::Target;
use tscap_protocol::{Key, Mode};
use tscap_references::Followed;

use crate::AlignBy;

/// When packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// One each, ns.
    Every(u64),
    /// A Poisson process with this mean gap, ns (RFC 2330, section 11.1.1).
    Poisson(u64),
}

/// A reflector, as somebody names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it was called.
    pub name: String,
    /// Its address and port.
    pub address: SocketAddr,
}

/// Sessions with reflectors, as asked for.
#[derive(Clone, Debug)]
pub struct SenderPlan {
    /// The reflectors.
    pub peers: Vec<Peer>,
    /// The network namespace that packets are sent from; `None` for this process's own.
    pub namespace: Option<Target>,
    /// When packets are sent.
    pub pacing: Pacing,
    /// Octets of a test packet; [`SenderPlan::least_size`] at least.
    pub size: u32,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Packets of each session; `None` without a limit.
    pub count: Option<u64>,
    /// Session identifier; `None` for one by chance in each session.
    pub ssid: Option<u16>,
    /// The key of both ends, if packets are authenticated.
    pub key: Option<Key>,
    /// A reply that comes later is late.
    pub wait: Duration,
    /// What aligns the clocks.
    pub align: AlignBy,
    /// Greatest difference of the clocks' rates, parts per billion; `None` for [`FREE_PPB`], and
    /// [`STEERED_PPB`] once one of them says that it is synchronised.
    pub max_drift_ppb: Option<u64>,
    /// Greatest difference of the least delays there and back that somebody vouches for, ns.
    pub max_asymmetry_ns: Option<u64>,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// The reference whose time the times are, which takes stamps of the TSC; `None` for the
    /// host's clock.
    pub reference: Option<Followed>,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
}

/// Two crystals: each is within 50 ppm, as they are sold for computers.
pub const FREE_PPB: u64 = 100_000;
/// The same, and the fastest that the kernel slews a clock by its frequency (`MAXFREQ`,
/// include/linux/timex.h).
pub const STEERED_PPB: u64 = FREE_PPB + 500_000;

impl SenderPlan {
    /// Whether packets are authenticated.
    pub fn mode(&self) -> Mode {
        match self.key {
            Some(_) => Mode::Authenticated,
            None => Mode::Unauthenticated,
        }
    }

    /// Octets of a packet that asks when the reply before left, and of one that does not.
    pub fn usual_size(mode: Mode) -> u32 {
        match mode {
            // The extension, and its hash.
            Mode::Authenticated => (mode.base() + 20 + 20) as u32,
            Mode::Unauthenticated => (mode.base() + 20) as u32,
        }
    }
}
