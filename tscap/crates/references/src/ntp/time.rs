//! Times as NTP packets have them (RFC 5905, section 6).

use tscap_clock::RealNs;

/// From 1900 to 1970, s (RFC 5905, figure 4).
const UNIX_EPOCH_S: u64 = 2_208_988_800;
const NS_PER_S: u64 = 1_000_000_000;

/// A timestamp: 32 bits of seconds of an era that it does not tell, 32 bits of fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// "Unknown or unsynchronised time".
    pub const NONE: Self = Self(0);

    /// That time within 68 years of `near`, rounded down to ns: an era has 136 years.
    pub fn to_real(self, near: RealNs) -> RealNs {
        let near_s = near.0 / NS_PER_S + UNIX_EPOCH_S;
        let here = (self.0 >> 32) as u32;
        let ahead = here.wrapping_sub(near_s as u32).cast_signed();
        let seconds = near_s.saturating_add_signed(i64::from(ahead));
        let ns = ((self.0 & 0xffff_ffff) * NS_PER_S) >> 32;
        let whole = seconds.saturating_sub(UNIX_EPOCH_S);
        RealNs(whole.saturating_mul(NS_PER_S).saturating_add(ns))
    }

    /// The least timestamp that [`Self::to_real`] gives back as `real`.
    pub fn of(real: RealNs) -> Self {
        let seconds = (real.0 / NS_PER_S).wrapping_add(UNIX_EPOCH_S);
        let fraction = ((real.0 % NS_PER_S) << 32).div_ceil(NS_PER_S);
        Self(seconds << 32 | fraction)
    }
}

/// A short format (16 bits of seconds, 16 of fraction), ns, rounded up.
pub(super) fn short_ns(short: u32) -> u64 {
    (u64::from(short) * NS_PER_S).div_ceil(1 << 16)
}

/// 2^`exponent` s, ns, rounded up: the precision of a clock. More than 64 s counts as so much.
pub(super) fn power_ns(exponent: i8) -> u64 {
    match exponent {
        0.. => NS_PER_S << exponent.min(6),
        _ => NS_PER_S.div_ceil(1 << exponent.unsigned_abs().min(32)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-11-25 00:00:00 UTC.
    const NOW: RealNs = RealNs(1_795_564_800 * NS_PER_S);

    #[test]
    fn times_of_the_rfc() {
        // Figure 4: the Unix epoch, and the last day of era 0, which is before 2036-02-07.
        let unix = NtpTime(UNIX_EPOCH_S << 32);
        assert_eq!(unix.to_real(RealNs(5)), RealNs(0));
        let last = NtpTime(u64::MAX);
        let ns = (4_294_967_295 - UNIX_EPOCH_S) * NS_PER_S + 999_999_999;
        assert_eq!(last.to_real(NOW), RealNs(ns));
        // Era 1.
        assert_eq!(NtpTime(0).to_real(NOW), RealNs(ns + 1));
        assert_eq!(NtpTime::of(RealNs(ns + 1)), NtpTime(0));
    }

    #[test]
    fn short_formats_are_rounded_up() {
        assert_eq!(short_ns(0x0001_0000), NS_PER_S);
        assert_eq!(short_ns(1), 15_259);
        assert_eq!(short_ns(u32::MAX), 65_535_999_984_742);
        assert_eq!((power_ns(0), power_ns(1)), (NS_PER_S, 2 * NS_PER_S));
        assert_eq!((power_ns(-20), power_ns(-32), power_ns(-128)), (954, 1, 1));
        assert_eq!(power_ns(127), 64 * NS_PER_S);
    }

    proptest! {
        #[test]
        fn a_time_is_read_as_it_was_written(
            ns in 0u64..u64::MAX / 2,
            away_s in -2_100_000_000i64..2_100_000_000,
        ) {
            let near = ns.saturating_add_signed(away_s.saturating_mul(1_000_000_000));
            prop_assert_eq!(NtpTime::of(RealNs(ns)).to_real(RealNs(near)), RealNs(ns));
        }

        #[test]
        fn any_time_is_read(bits in any::<u64>(), near in any::<u64>()) {
            let _ = NtpTime(bits).to_real(RealNs(near));
        }
    }
}
