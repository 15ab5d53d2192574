//! Where a program can be attached, and how.

use std::os::fd::AsFd as _;

use tscap_common::hook::Hook;

use super::held::{ByFilter, Held, Refusal};
use super::place::Place;
use super::program::Program;
use tscap_network::bpf::{InterfaceLink, LinkPoint, TracingLink, TracingPoint};
use tscap_network::clsact::Side;
use tscap_network::netdev::{Link, LinkReader};
use tscap_network::packet::Tap;

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// To received frames in the driver, before a socket buffer is made.
    NativeXdp,
    /// To received frames at the entry of somebody else's program at native XDP.
    NativeEntry,
    /// To received frames in the network stack: they may be aggregates (GRO), and are
    /// copied for it.
    GenericXdp,
    /// To received frames at the entry of somebody else's program at generic XDP.
    GenericEntry,
    /// To received frames in the network stack, where they may be aggregates.
    TcxIngress,
    /// To frames that are to be sent, before the queueing discipline: they may be
    /// aggregates (GSO), and may be dropped there.
    TcxEgress,
    /// To frames that go to the driver, at a tracepoint of all devices: behind the queueing
    /// discipline, where tcpdump sees them too.
    DriverEgress,
    /// To frames that go to the driver, as a packet socket of the interface gets them: behind
    /// the queueing discipline, where tcpdump sees them.
    Tap,
    /// As [`Self::TcxIngress`], by a filter, which outlives the process if that is killed.
    ClsactIngress,
    /// As [`Self::TcxEgress`], by a filter.
    ClsactEgress,
}

impl AttachPoint {
    /// Its name for people and machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NativeXdp => "native XDP",
            Self::NativeEntry => "fentry at native XDP",
            Self::GenericXdp => "generic XDP",
            Self::GenericEntry => "fentry at generic XDP",
            Self::TcxIngress => "tcx ingress",
            Self::TcxEgress => "tcx egress",
            Self::DriverEgress => "driver egress",
            Self::Tap => "tap",
            Self::ClsactIngress => "clsact ingress",
            Self::ClsactEgress => "clsact egress",
        }
    }

    /// What its programs see.
    pub const fn hook(self) -> Hook {
        match self {
            Self::NativeXdp | Self::GenericXdp => Hook::Xdp,
            Self::NativeEntry | Self::GenericEntry => Hook::XdpEntry,
            Self::TcxIngress | Self::ClsactIngress => Hook::TcIngress,
            Self::TcxEgress | Self::ClsactEgress => Hook::TcEgress,
            Self::DriverEgress => Hook::Transmit,
            Self::Tap => Hook::Tap,
        }
    }

    /// Whether it is the entry of somebody else's program.
    pub const fn is_entry(self) -> bool {
        matches!(self, Self::NativeEntry | Self::GenericEntry)
    }

    /// Whether it is a filter of tc, which the process that made it has to remove.
    pub const fn is_filter(self) -> bool {
        matches!(self, Self::ClsactIngress | Self::ClsactEgress)
    }

    /// Whether frames are seen in the driver, before the network stack.
    pub const fn is_in_driver(self) -> bool {
        matches!(self, Self::NativeXdp | Self::NativeEntry)
    }

    /// Attaches a program here, for its `place`.
    pub(super) fn attach(
        self,
        program: &Program,
        link: &Link,
        place: &Place<'_>,
        by_filter: &mut ByFilter<'_>,
    ) -> Result<Held, Refusal> {
        let program = program.as_fd();
        let at = match self {
            Self::NativeXdp => LinkPoint::NativeXdp,
            Self::GenericXdp => LinkPoint::GenericXdp,
            Self::TcxIngress => LinkPoint::TcxIngress,
            Self::TcxEgress => LinkPoint::TcxEgress,
            Self::DriverEgress => {
                let held = TracingLink::attach(program, TracingPoint::Tracepoint)?;
                return Ok(Held::Tracepoint(held, LinkReader::here(link.index)?));
            }
            Self::Tap => {
                let tap = Tap::attach(program, link.index)?;
                return Ok(Held::Tap(tap, LinkReader::here(link.index)?));
            }
            Self::NativeEntry | Self::GenericEntry => {
                let entry = place
                    .entry
                    .ok_or("there is no program at whose entry it could be")?;
                return Ok(Held::Entry(Box::new(entry.attach(program)?)));
            }
            Self::ClsactIngress => {
                return by_filter(program, link, Side::Ingress).map(Held::Filter);
            }
            Self::ClsactEgress => return by_filter(program, link, Side::Egress).map(Held::Filter),
        };
        Ok(Held::Link(InterfaceLink::attach(program, link.index, at)?))
    }
}
