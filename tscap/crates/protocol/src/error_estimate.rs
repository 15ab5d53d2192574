//! How far off the clock of a timestamp is, by its own account (RFC 4656, section 4.1.2).

use super::TimeFormat;

/// Binary digits behind the point of the unit, s.
const FRACTION: u32 = 32;
const NS_PER_S: u128 = 1_000_000_000;
const SYNCHRONISED: u16 = 1 << 15;
const PTP: u16 = 1 << 14;
const MOST_SCALE: u32 = 63;

/// The Error Estimate of a packet: `multiplier` · 2^(`scale` − 32) s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorEstimate {
    /// S: the clock follows UTC by an external source.
    pub synchronised: bool,
    /// Z: how the timestamps of the packet are written (RFC 8186).
    pub format: TimeFormat,
    /// Exponent of the estimate, 0 to 63: a step of it doubles the error.
    pub scale: u8,
    /// 1 to 255. 0 is that of a corrupt packet.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The least estimate that is not less than `bound_ns`.
    pub fn covering(bound_ns: u64, synchronised: bool, format: TimeFormat) -> Self {
        let units = (u128::from(bound_ns) << FRACTION).div_ceil(NS_PER_S).max(1);
        let digits = u128::BITS - units.leading_zeros();
        let mut scale = digits.saturating_sub(8);
        let mut multiplier = units.div_ceil(1 << scale);
        if multiplier > 255 {
            scale += 1;
            multiplier = units.div_ceil(1 << scale);
        }
        // 64 bits of ns are less than 2^35 s.
        debug_assert!(scale <= MOST_SCALE && (1..=255).contains(&multiplier));
        Self {
            synchronised,
            format,
            scale: scale as u8,
            multiplier: multiplier as u8,
        }
    }

    /// As it is in a packet.
    pub fn to_bits(self) -> u16 {
        let flags = [
            (self.synchronised, SYNCHRONISED),
            (self.format == TimeFormat::Ptp, PTP),
        ];
        let flags = flags.into_iter().filter(|it| it.0);
        let scale = u16::from(self.scale & 0x3f) << 8;
        flags.fold(scale | u16::from(self.multiplier), |bits, it| bits | it.1)
    }

    /// Of a packet; `None` where the multiplier is 0: the packet is corrupt, and not to be used
    /// (RFC 4656).
    pub fn from_bits(bits: u16) -> Option<Self> {
        let multiplier = (bits & 0xff) as u8;
        (multiplier > 0).then_some(Self {
            synchronised: bits & SYNCHRONISED != 0,
            format: if bits & PTP == 0 {
                TimeFormat::Ntp
            } else {
                TimeFormat::Ptp
            },
            scale: (bits >> 8 & 0x3f) as u8,
            multiplier,
        })
    }

    /// What it says, ns, rounded up.
    pub fn bound_ns(self) -> u64 {
        let units = u128::from(self.multiplier) << self.scale;
        let ns = (units * NS_PER_S).div_ceil(1 << FRACTION);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn estimates_of_some_bounds() {
        // 215 · 2^1, 135 · 2^5 and 132 · 2^15 units of 2^-32 s.
        for (bound_ns, scale, multiplier, said_ns) in [
            (100, 1, 215, 101),
            (1_000, 5, 135, 1_006),
            (1_000_000, 15, 132, 1_007_081),
            (0, 0, 1, 1),
        ] {
            let estimate = ErrorEstimate::covering(bound_ns, false, TimeFormat::Ntp);
            assert_eq!(
                (estimate.scale, estimate.multiplier),
                (scale, multiplier),
                "{bound_ns}"
            );
            assert_eq!(estimate.bound_ns(), said_ns);
        }
    }

    #[test]
    fn flags_are_the_upper_bits() {
        let estimate = ErrorEstimate::covering(1_000, true, TimeFormat::Ptp);
        assert_eq!(estimate.to_bits(), 0b1100_0101_1000_0111);
        assert_eq!(ErrorEstimate::from_bits(0xc500), None);
    }

    proptest! {
        #[test]
        fn it_covers_and_is_tight(bound_ns in any::<u64>()) {
            let estimate = ErrorEstimate::covering(bound_ns, true, TimeFormat::Ntp);
            let said = u128::from(estimate.bound_ns());
            prop_assert!(said >= u128::from(bound_ns));
            // Seven digits of a multiplier, and both roundings to a whole unit.
            prop_assert!(said <= u128::from(bound_ns) * 129 / 128 + 2);
            prop_assert_eq!(ErrorEstimate::from_bits(estimate.to_bits()), Some(estimate));
        }

        #[test]
        fn any_bits_are_read_and_written(bits in any::<u16>()) {
            if let Some(estimate) = ErrorEstimate::from_bits(bits) {
                prop_assert_eq!(estimate.to_bits(), bits);
                let _ = estimate.bound_ns();
            }
        }
    }
}
