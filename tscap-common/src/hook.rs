//! What both sides of the ring must agree on: where a program is attached, which way its
//! frames go, and which clock it stamps with. Hook and clock together name the program.

use crate::block::{FLAGS_INBOUND, FLAGS_OUTBOUND};

/// What a program is attached to. It decides what a frame looks like to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP, in the driver or in the network stack: frames that an interface receives.
    Xdp,
    /// The entry of somebody else's XDP program (fentry): the frames that it gets, before it
    /// decides about them.
    XdpEntry,
    /// tcx or clsact ingress: socket buffers that an interface has received, before the
    /// protocols get them.
    TcIngress,
    /// tcx or clsact egress: socket buffers that are to be sent, before the queueing
    /// discipline.
    TcEgress,
    /// The tracepoint `net_dev_start_xmit`: socket buffers of all devices of the machine, on
    /// their way to the driver.
    Transmit,
    /// The tap of a packet socket: socket buffers that its interface sends, behind the queueing
    /// discipline. Only `tscap delay` has programs there.
    Tap,
    /// A hook of netfilter: IP packets that are received. The layers of `tscap qos` alone have
    /// programs there and at the next two, by ktime.
    Netfilter,
    /// A control group: IP packets that one of its sockets is to get.
    Cgroup,
    /// Where the receive call of an application takes a UDP packet from its socket.
    Application,
}

/// Which way a frame goes at its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// It is received.
    In,
    /// It is sent.
    Out,
}

impl Direction {
    /// Both, by their numbers.
    pub const ALL: [Self; 2] = [Self::In, Self::Out];

    /// Its bits of `epb_flags`.
    pub const fn epb_flags(self) -> u32 {
        match self {
            Self::In => FLAGS_INBOUND,
            Self::Out => FLAGS_OUTBOUND,
        }
    }
}

/// Number of a program's place in the capture: an interface in the file's order, and a
/// direction. Each attached program has its own as a constant, so that its frames and
/// losses are told apart whatever number the interface has in whatever namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

impl Slot {
    /// Of interface number `interface` in the file's order.
    pub const fn of(interface: u32, direction: Direction) -> Self {
        Self(interface * 2 + direction as u32)
    }

    /// Index of the interface in the file.
    pub const fn interface(self) -> u32 {
        self.0 / 2
    }

    /// Which way its frames go.
    pub const fn direction(self) -> Direction {
        Direction::ALL[self.0 as usize % 2]
    }
}

/// The clock of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockDomain {
    /// CLOCK_MONOTONIC, ns.
    Monotonic,
    /// CLOCK_TAI, ns.
    Tai,
    /// The TSC, cycles: one scale for all CPUs.
    Tsc,
    /// A CPU's own count of TSC cycles since its perf event was enabled: user space
    /// finds each CPU's offset to the TSC.
    CpuTsc,
}

impl Hook {
    /// Which way its frames go.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Xdp
            | Self::XdpEntry
            | Self::TcIngress
            | Self::Netfilter
            | Self::Cgroup
            | Self::Application => Direction::In,
            Self::TcEgress | Self::Transmit | Self::Tap => Direction::Out,
        }
    }

    /// Name of the program that stamps by `clock` here.
    pub const fn program(self, clock: ClockDomain) -> &'static str {
        match (self, clock) {
            (Self::Xdp, ClockDomain::Monotonic) => "tscap_ktime",
            (Self::Xdp, ClockDomain::Tai) => "tscap_tai",
            (Self::Xdp, ClockDomain::Tsc) => "tscap_tsc_kfunc",
            (Self::Xdp, ClockDomain::CpuTsc) => "tscap_tsc_perf",
            (Self::XdpEntry, ClockDomain::Monotonic) => "tscap_pre_ktime",
            (Self::XdpEntry, ClockDomain::Tai) => "tscap_pre_tai",
            (Self::XdpEntry, ClockDomain::Tsc) => "tscap_pre_kfunc",
            (Self::XdpEntry, ClockDomain::CpuTsc) => "tscap_pre_perf",
            (Self::TcIngress, ClockDomain::Monotonic) => "tscap_in_ktime",
            (Self::TcIngress, ClockDomain::Tai) => "tscap_in_tai",
            (Self::TcIngress, ClockDomain::Tsc) => "tscap_in_kfunc",
            (Self::TcIngress, ClockDomain::CpuTsc) => "tscap_in_perf",
            (Self::TcEgress, ClockDomain::Monotonic) => "tscap_out_ktime",
            (Self::TcEgress, ClockDomain::Tai) => "tscap_out_tai",
            (Self::TcEgress, ClockDomain::Tsc) => "tscap_out_kfunc",
            (Self::TcEgress, ClockDomain::CpuTsc) => "tscap_out_perf",
            (Self::Transmit, ClockDomain::Monotonic) => "tscap_tx_ktime",
            (Self::Transmit, ClockDomain::Tai) => "tscap_tx_tai",
            (Self::Transmit, ClockDomain::Tsc) => "tscap_tx_kfunc",
            (Self::Transmit, ClockDomain::CpuTsc) => "tscap_tx_perf",
            (Self::Tap, ClockDomain::Monotonic) => "tscap_tap_ktime",
            (Self::Tap, ClockDomain::Tai) => "tscap_tap_tai",
            (Self::Tap, ClockDomain::Tsc) => "tscap_tap_kfunc",
            (Self::Tap, ClockDomain::CpuTsc) => "tscap_tap_perf",
            (Self::Netfilter, _) => "tscap_netfilter",
            (Self::Cgroup, _) => "tscap_cgroup",
            (Self::Application, _) => "tscap_taken",
        }
    }
}

const _: () = assert!(Slot::of(3, Direction::Out).interface() == 3);
const _: () = assert!(matches!(
    Slot::of(3, Direction::Out).direction(),
    Direction::Out
));
