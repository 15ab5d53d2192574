//! What kind of reference it is: the constants of the model, with their origin.
//!
//! RADclock (Veitch, Ridoux, Korada: Robust Synchronization of Absolute and
//! Difference Clocks over Networks, 2009) derives all of its constants from one,
//! δ, the error of a client's own time stamp, 15 µs between a PC and an NTP server
//! then. Here δ comes from the quantiles of a reference's bracket widths.

/// The constants of one kind of reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// δ: how much wider than the least a usual bracket is, ns.
    pub noise_ns: u64,
    /// How many readings that contradict the clock by more than a slew could are
    /// passed over before they are believed: none where every reading is certain.
    pub confirmations: u32,
    /// The same of those that a slew could explain.
    pub slew_confirmations: u32,
    /// Fastest that the reference may be slewed, ppm: what is more than that is a
    /// jump.
    pub fastest_ppm: u64,
}

impl Scale {
    /// The host's own clocks through the vDSO.
    ///
    /// Widths measured by 20,000 brackets of CLOCK_REALTIME, TAI, REALTIME between
    /// two fenced readings of the TSC, 200 µs apart as in a capture under traffic
    /// (2 CPUs of an AMD EPYC as a virtual machine, Linux 6.18, TSC in steps of
    /// 10 ns, other work on it; `cargo xtask bench clock` measures them again): least
    /// 80 ns, median 90, p90 90, p99 110, p99.9 260. So δ is the step of that TSC.
    ///
    /// Such a bracket is certain: the kernel's clock did read so in between. It is
    /// slewed by up to 100,000 ppm: `adjtimex` takes ticks that are up to a tenth off
    /// (`__do_adjtimex`, kernel/time/ntp.c), which chrony uses (`maxslewrate`, 83,333
    /// ppm by default).
    pub const HOST: Self = Self {
        noise_ns: 10,
        confirmations: 0,
        slew_confirmations: 0,
        fastest_ppm: 100_000,
    };

    /// A server across a network, with RADclock's δ. One that answers wrongly once
    /// is not believed. NTP and PTP servers are slewed by 500 ppm at most
    /// (`MAXFREQ`, include/linux/timex.h), on either side of that.
    pub const NETWORK: Self = Self {
        noise_ns: 15_000,
        confirmations: 3,
        slew_confirmations: 3,
        fastest_ppm: 1_000,
    };

    /// A PTP hardware clock of this machine.
    ///
    /// δ is what a read over PCI Express takes more than usual, of the order of 100 ns
    /// (no such device was at hand to measure). A register that is read while the
    /// device resets gives nonsense once, so a jump is confirmed; a daemon slews the
    /// device several times a second, so a slew is not: by far less than 1,000 ppm once
    /// it has been set (ptp4l steps what is off by more than 20 µs at its start,
    /// `first_step_threshold`).
    pub const PHC: Self = Self {
        noise_ns: 100,
        confirmations: 3,
        slew_confirmations: 0,
        fastest_ppm: 1_000,
    };

    /// RADclock's E = 4δ: the point error at which a reading has lost most of its
    /// weight, ns.
    pub(super) fn quality_ns(self) -> u64 {
        4 * self.noise_ns
    }

    /// After so long a reading has aged by E, ns: 2 s for the host, 50 minutes for a
    /// network. RADclock's τ* of 1000 s is the scale to which counters are stable.
    pub(super) fn lifetime_ns(self) -> u64 {
        self.quality_ns() * 1_000_000_000 / AGEING_PPB
    }
}

/// RADclock's ε: point errors grow by 0.02 ppm of a reading's age.
pub(super) const AGEING_PPB: u64 = 20;
/// RADclock's bound on how far a counter's rate wanders, 0.1 ppm: figure 12 of The
/// Case for Feed-Forward Clock Synchronization shows less for all counters at every
/// scale from 100 s on.
pub(super) const WANDER_PPB: u64 = 100;
/// RADclock's top-level window, in ns: 7 days.
pub(super) const HISTORY_NS: u64 = 7 * 86_400 * 1_000_000_000;
