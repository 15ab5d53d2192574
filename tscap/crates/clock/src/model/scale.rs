//! What kind of reference it is: the constants of the model, with their origin.
//!
//! RADclock (Veitch, Ridoux, Korada: Robust Synchronization of Absolute and
//! Difference Clocks over Networks, 2009) derives all of its constants from one,
//! δ, the error of a client's own time stamp, 15 µs between a PC and an NTP server
//! then. Here δ comes from the quantiles of a reference's bracket widths.

use crate::NsPerCycle;

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
    /// Whether it is a clock that a kernel makes of the counter itself.
    pub is_kernels: bool,
    /// How far the rate of any other may be from its average, parts per billion, see
    /// [`Self::wander_ppb`].
    wanders_ppb: u64,
}

impl Scale {
    /// The host's own clocks through the vDSO.
    ///
    /// Widths measured by 12,500 brackets of CLOCK_REALTIME between two fenced readings
    /// of the TSC, 400 µs apart, as in a capture under the fastest traffic (2 CPUs of an
    /// AMD EPYC as a virtual machine, Linux 6.18, TSC in steps of 10 ns; `cargo xtask
    /// bench clock --only host` measures them again): least 40 ns, median 50, p90 60, p99
    /// 60, p99.9 90. So δ is the step of that TSC.
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
        is_kernels: true,
        wanders_ppb: 0,
    };

    /// A server across a network, with RADclock's δ. One that answers wrongly once
    /// is not believed. NTP and PTP servers are slewed by 500 ppm at most
    /// (`MAXFREQ`, include/linux/timex.h), on either side of that.
    pub const NETWORK: Self = Self {
        noise_ns: 15_000,
        confirmations: 3,
        slew_confirmations: 3,
        fastest_ppm: 1_000,
        is_kernels: false,
        wanders_ppb: NETWORK_WANDER_PPB,
    };

    /// A PTP hardware clock of this machine.
    ///
    /// δ is what a read over PCI Express takes more than usual, of the order of 100 ns
    /// (no such device was at hand to measure). A register that is read while the
    /// device resets gives nonsense once, so a jump is confirmed by the next reading; a daemon slews the
    /// device several times a second, so a slew is not: by far less than 1,000 ppm once
    /// it has been set (ptp4l steps what is off by more than 20 µs at its start,
    /// `first_step_threshold`).
    pub const PHC: Self = Self {
        noise_ns: 100,
        confirmations: 1,
        slew_confirmations: 0,
        fastest_ppm: 1_000,
        is_kernels: false,
        wanders_ppb: STEERED_PPB,
    };

    /// CLOCK_MONOTONIC against a PTP hardware clock that is the counter.
    ///
    /// Each reading is certain, as of [`Self::HOST`], and as of it how far a rate was changed
    /// shows at the next reading, which a capture's bound takes in then. Noise and slews are
    /// those of [`Self::PHC`].
    pub const NIC: Self = Self {
        noise_ns: 100,
        confirmations: 0,
        slew_confirmations: 0,
        fastest_ppm: 1_000,
        is_kernels: true,
        wanders_ppb: 0,
    };

    /// How far the rate of the reference against the counter may be from its average,
    /// parts per billion, while nobody changes that.
    ///
    /// RADclock's bound on how far a counter's rate wanders is 0.1 ppm: figure 12 of
    /// The Case for Feed-Forward Clock Synchronization shows less for all counters at
    /// every scale from 100 s on. A clock that the kernel makes of the counter does not
    /// feel that; its rate alternates between two neighbouring multipliers, or stays
    /// with one: on the machine above, whose clock nobody corrects, CLOCK_REALTIME less
    /// CLOCK_MONOTONIC_RAW was the same to the nanosecond for 13 s. The rate of a PTP hardware
    /// clock is what its daemon makes of it several times a second, by less than a reading
    /// shows.
    pub fn wander_ppb(self, rate: NsPerCycle) -> u64 {
        if self.is_kernels {
            multiplier_step_ppb(rate)
        } else {
            self.wanders_ppb
        }
    }

    /// How far the rate usually is from its average over a lifetime of readings, parts per
    /// billion, half of [`Self::wander_ppb`]; `None` where a daemon changes the reference's
    /// rate at any time, and a lifetime is of seconds, in which nothing of that is seen.
    pub(super) fn usual_wander_ppb(self) -> Option<u64> {
        (self.slew_confirmations > 0).then_some(NETWORK_WANDER_PPB / 2)
    }

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

/// RADclock's bound on how far a counter's rate wanders: 0.1 ppm.
const NETWORK_WANDER_PPB: u64 = 100;
/// How far a daemon's corrections are from their average: those of ptp4l, 8 times a second, are
/// 4 ppm at most beside a counter that is good to 0.1 ppm.
const STEERED_PPB: u64 = 10_000;
/// RADclock's ε: point errors grow by 0.02 ppm of a reading's age.
pub(super) const AGEING_PPB: u64 = 20;
/// RADclock's top-level window, in ns: 7 days.
pub(super) const HISTORY_NS: u64 = 7 * 86_400 * 1_000_000_000;

/// By how much the kernel can change the rate of its clocks at least, parts per billion:
/// one unit of the integer that it multiplies cycles by, which is as large as lets the
/// product of 600 s fit 64 bits (`__clocksource_update_freq_scale` and
/// `clocks_calc_mult_shift`, kernel/time/clocksource.c). Any other rate, as under NTP or
/// of a counter whose period is no such integer, it makes by alternating between two
/// (`timekeeping_adjust`, kernel/time/timekeeping.c).
fn multiplier_step_ppb(rate: NsPerCycle) -> u64 {
    let khz = 1_000_000 * u128::from(NsPerCycle::ONE.0) / u128::from(rate.0);
    let taken = u128::BITS - ((600_000 * khz) >> 32).leading_zeros();
    let shifts = (1..=32).rev();
    let multipliers = shifts.map(|shift| ((1_000_000u128 << shift) + khz / 2) / khz);
    let fits = |multiplier: &u128| multiplier >> (32u32.saturating_sub(taken)) == 0;
    let multiplier = multipliers.filter(fits).max().unwrap_or(1).max(1);
    u64::try_from(1_000_000_000u128.div_ceil(multiplier)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mult` as kernels print it (`/proc/timer_list`, `dmesg`) is 2^shift ns a cycle.
    #[test]
    fn a_step_of_the_kernels_multiplier() {
        // In kHz, with the multiplier by the kernel's own function.
        for (khz, multiplier) in [
            (1_000_000, 8_388_608),
            (2_596_130, 6_462_394),
            (3_000_000, 5_592_405),
            (4_000_000, 2_097_152),
        ] {
            let rate = NsPerCycle::of(1_000_000, khz).unwrap();
            let expected = 1_000_000_000u64.div_ceil(multiplier);
            assert_eq!(multiplier_step_ppb(rate), expected, "{khz}");
        }
    }
}
