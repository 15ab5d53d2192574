//! Timestamps as packets have them: NTP's (RFC 5905, section 6) and PTP's (RFC 8186).

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

/// How a timestamp of 64 bits is written: the Z bit of the Error Estimate (RFC 8186, section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeFormat {
    /// As NTP writes it: UTC.
    #[default]
    Ntp,
    /// The truncated format of PTPv2 (IEEE 1588): 32 bits of seconds since 1970 by TAI, and 32
    /// bits of nanoseconds.
    Ptp,
}

/// A timestamp whose [`TimeFormat`] stands elsewhere in its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// No time: a field that nobody has filled in.
    pub const NONE: Self = Self(0);

    /// The timestamp of a time, where TAI − UTC is `tai_offset_s`.
    pub fn of(real: RealNs, format: TimeFormat, tai_offset_s: i64) -> Self {
        match format {
            TimeFormat::Ntp => Self(NtpTime::of(real).0),
            TimeFormat::Ptp => {
                let seconds = (real.0 / NS_PER_S).wrapping_add_signed(tai_offset_s);
                Self((seconds << 32) | (real.0 % NS_PER_S))
            }
        }
    }

    /// That time within 68 years of `near`, rounded down to ns.
    pub fn to_real(self, format: TimeFormat, near: RealNs, tai_offset_s: i64) -> RealNs {
        match format {
            TimeFormat::Ntp => NtpTime(self.0).to_real(near),
            TimeFormat::Ptp => {
                let near_s = (near.0 / NS_PER_S).saturating_add_signed(tai_offset_s);
                let here = (self.0 >> 32) as u32;
                let ahead = here.wrapping_sub(near_s as u32).cast_signed();
                let seconds = near_s.saturating_add_signed(i64::from(ahead));
                let seconds = seconds.saturating_add_signed(-tai_offset_s);
                let ns = self.0 & 0xffff_ffff;
                RealNs(seconds.saturating_mul(NS_PER_S).saturating_add(ns))
            }
        }
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
        fn either_format_is_read_as_it_was_written(
            ns in 0u64..u64::MAX / 4,
            away_s in -2_000_000_000i64..2_000_000_000,
            tai_offset_s in 0i64..60,
        ) {
            let near = RealNs(ns.saturating_add_signed(away_s * 1_000_000_000));
            for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
                let written = Timestamp::of(RealNs(ns), format, tai_offset_s);
                prop_assert_eq!(written.to_real(format, near, tai_offset_s), RealNs(ns));
            }
        }

        #[test]
        fn any_time_is_read(bits in any::<u64>(), near in any::<u64>()) {
            let _ = NtpTime(bits).to_real(RealNs(near));
            let _ = Timestamp(bits).to_real(TimeFormat::Ptp, RealNs(near), 37);
        }
    }
}
