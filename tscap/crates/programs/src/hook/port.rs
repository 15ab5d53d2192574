//! Where programs are attached: the interface, and the points asked for.

use tscap_common::hook::{Direction, Slot};

use super::place::Place;
use tscap_filter as filter;
use tscap_network::netdev::Link;

/// Which hook to take for received frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HookChoice {
    /// Native XDP; the entry of an XDP program that is there already; else tcx, with --tap
    /// generic XDP
    #[default]
    Auto,
    /// Native XDP: in the driver, before a socket buffer is made
    Xdp,
    /// Generic XDP: in the network stack
    Generic,
    /// tcx: in the network stack, without any change of the driver
    Tcx,
}

/// Where sent frames are to be stamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EgressPoint {
    /// tcx egress: before the queueing discipline
    #[default]
    Qdisc,
    /// The tracepoint net_dev_start_xmit: behind the queueing discipline, where tcpdump is
    /// (kernel 6.12)
    Driver,
}

/// Where programs are to be attached: an interface, its number in the file, and the filter
/// of its frames.
#[derive(Clone, Copy, Debug)]
pub struct Port<'a> {
    /// The interface.
    pub link: &'a Link,
    /// Index of its description in the file.
    pub number: u32,
    /// Frames that it rejects are counted only.
    pub filter: Option<&'a filter::Program>,
}

impl Port<'_> {
    /// Whether XDP is not for it: generic XDP would copy what the loopback sends.
    pub(super) fn is_in_stack(&self) -> bool {
        !self.link.is_ethernet() || self.link.is_loopback()
    }

    pub(super) fn place(&self, direction: Direction) -> Place<'_> {
        Place {
            slot: Slot::of(self.number, direction),
            filter: self.filter,
            ..Place::FIRST
        }
    }
}
