//! What both sides of the ring must agree on: where a program is attached, and which
//! clock it stamps with. The two together name the program.

use crate::block::FLAGS_INBOUND;

/// What a program is attached to. It decides what a frame looks like to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP, in the driver or in the network stack: frames that an interface receives.
    Xdp,
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
    /// Value of `epb_flags` for its frames.
    pub const fn epb_flags(self) -> u32 {
        match self {
            Self::Xdp => FLAGS_INBOUND,
        }
    }

    /// Name of the program that stamps by `clock` here.
    pub const fn program(self, clock: ClockDomain) -> &'static str {
        match (self, clock) {
            (Self::Xdp, ClockDomain::Monotonic) => "tscap_ktime",
            (Self::Xdp, ClockDomain::Tai) => "tscap_tai",
            (Self::Xdp, ClockDomain::Tsc) => "tscap_tsc_kfunc",
            (Self::Xdp, ClockDomain::CpuTsc) => "tscap_tsc_perf",
        }
    }
}
