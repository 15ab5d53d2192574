//! When frames are due, by exact integer arithmetic.

/// Nanoseconds of a second.
const NS_PER_S: u128 = 1_000_000_000;
/// Bits behind the point of a [`Period`].
const FRACTION_BITS: u32 = 32;

/// From the start of one frame to the start of the next, in units of 2^-32 ns:
/// rounding it puts a frame off by 0.12 ns after a billion frames before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(u128);

impl Period {
    /// A nanosecond: no sender keeps it.
    pub const LEAST: Self = Self(1 << FRACTION_BITS);

    /// `numerator / denominator` ns, rounded to the nearest; `None` if that is
    /// less than 1 ns or 2^63 ns and more.
    fn ratio(numerator: u128, denominator: u128) -> Option<Self> {
        let scaled = numerator.checked_mul(1 << FRACTION_BITS)?;
        let period = scaled
            .checked_add(denominator / 2)?
            .checked_div(denominator)?;
        let range = 1 << FRACTION_BITS..1 << (63 + FRACTION_BITS);
        range.contains(&period).then_some(Self(period))
    }

    /// The period in whole nanoseconds, rounded down.
    pub fn ns(self) -> u64 {
        (self.0 >> FRACTION_BITS) as u64
    }

    /// The rest, in units of 2^-32 ns.
    pub fn fraction(self) -> u32 {
        self.0 as u32
    }

    /// When frame `number` is due, ns after frame 0, rounded down. Saturates
    /// after 584 years.
    pub fn due_ns(self, number: u64) -> u64 {
        let due = self.0.saturating_mul(u128::from(number)) >> FRACTION_BITS;
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// Frames that are due in the first `ns`, the one at 0 included.
    pub fn frames_in(self, ns: u64) -> u64 {
        let frames = (u128::from(ns) << FRACTION_BITS).div_ceil(self.0);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Frames a second, for people.
    pub fn rate(self) -> f64 {
        1e9 * (1u64 << FRACTION_BITS) as f64 / self.0 as f64
    }
}

/// A line rate, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRate(pub u64);

impl LineRate {
    /// The line of the papers.
    pub const GIGABIT: Self = Self(1_000_000_000);
    /// The least gap between two frames on Ethernet, byte times (IEEE 802.3,
    /// interPacketGap, 4.4.2).
    pub const LEAST_GAP: u64 = 12;

    /// The period of frames of `size` bytes with `gap` byte times between them.
    pub fn period(self, size: u32, gap: u64) -> Option<Period> {
        let byte_times = u128::from(size) + u128::from(gap);
        Period::ratio(byte_times * 8 * NS_PER_S, u128::from(self.0))
    }

    /// The period of frames of `size` bytes with `gap_ns` between them.
    pub fn period_with_ns(self, size: u32, gap_ns: u64) -> Option<Period> {
        let line = u128::from(self.0);
        let numerator = u128::from(size) * 8 * NS_PER_S + u128::from(gap_ns) * line;
        Period::ratio(numerator, line)
    }

    /// Whether frames of `size` bytes can follow each other so closely.
    pub fn can_carry(self, size: u32, period: Period) -> bool {
        let least = self.period(size, Self::LEAST_GAP);
        least.is_none_or(|least| period >= least)
    }
}

/// How much to send: `number · 10^exponent` of a unit a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// All the digits given.
    pub digits: u64,
    /// Power of ten to multiply them by.
    pub exponent: i32,
    /// Bits rather than frames.
    pub is_bits: bool,
}

impl Rate {
    /// The period of frames of `size` bytes; `None` if no clock could pace it.
    pub fn period(self, size: u32) -> Option<Period> {
        let frame = if self.is_bits {
            u128::from(size) * 8
        } else {
            1
        };
        let power = |exponent: i32| 10u128.checked_pow(u32::try_from(exponent).ok()?);
        let (numerator, denominator) = if self.exponent >= 0 {
            let power = power(self.exponent)?;
            (
                frame * NS_PER_S,
                u128::from(self.digits).checked_mul(power)?,
            )
        } else {
            let power = power(-self.exponent)?;
            (
                (frame * NS_PER_S).checked_mul(power)?,
                u128::from(self.digits),
            )
        };
        Period::ratio(numerator, denominator)
    }
}

/// The traffic patterns of Orosz & Skopkó (2013), section IV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// G.729 voice.
    Voip,
    /// High-definition video.
    Hd,
}

impl Pattern {
    /// Frame size, bytes, and gap, byte times at 1 Gbit/s.
    pub fn size_and_gap(self) -> (u32, u64) {
        match self {
            Self::Voip => (140, 2_499_860),
            Self::Hd => (1368, 169_631),
        }
    }
}

/// How frames follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// One each period.
    Paced(Period),
    /// As fast as can be.
    FlatOut,
}

/// Frames of one size, sent in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// From the first byte of the Ethernet header to the last of the payload,
    /// without the frame check sequence.
    pub size: u32,
    /// How they follow each other.
    pub pacing: Pacing,
}

impl Step {
    /// Frames that a run of at most `count` frames and `duration_ns` has; `None`
    /// if neither says (flat out, a duration is kept by the clock instead).
    pub fn frames(&self, count: Option<u64>, duration_ns: Option<u64>) -> Option<u64> {
        let in_time = match (self.pacing, duration_ns) {
            (Pacing::Paced(period), Some(ns)) => Some(period.frames_in(ns)),
            _ => None,
        };
        match (count, in_time) {
            (Some(count), Some(in_time)) => Some(count.min(in_time)),
            (count, in_time) => count.or(in_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_patterns() {
        let period = |pattern: Pattern| {
            let (size, gap) = pattern.size_and_gap();
            LineRate::GIGABIT.period(size, gap).unwrap()
        };
        let voip = period(Pattern::Voip);
        assert_eq!((voip.ns(), voip.fraction()), (20_000_000, 0));
        let hd = period(Pattern::Hd);
        assert_eq!((hd.ns(), hd.fraction()), (1_367_992, 0));
    }

    #[test]
    fn a_third_of_a_nanosecond_is_not_lost() {
        let rate = Rate {
            digits: 3,
            exponent: 6,
            is_bits: false,
        };
        let period = rate.period(64).unwrap();
        assert_eq!(period.ns(), 333);
        // A second, and an hour.
        assert_eq!(period.due_ns(3_000_000), 999_999_999);
        let hour = period.due_ns(3_000_000 * 3600);
        assert!(3_600_000_000_000 - hour <= 2, "{hour}");
        assert_eq!(period.due_ns(u64::MAX), u64::MAX);
        assert_eq!(period.frames_in(1_000_000_000), 3_000_001);
        assert_eq!(period.frames_in(0), 0);
        assert_eq!(period.frames_in(1), 1);
    }

    #[test]
    fn rates_in_bits_and_in_fractions() {
        let rate = |digits, exponent, is_bits| Rate {
            digits,
            exponent,
            is_bits,
        };
        let ns = |rate: Rate, size| rate.period(size).map(Period::ns);
        assert_eq!(ns(rate(8, 6, true), 1000), Some(1_000_000));
        assert_eq!(ns(rate(25, -1, false), 64), Some(400_000_000));
        assert_eq!(ns(rate(1, 9, false), 64), Some(1));
        assert_eq!(ns(rate(2, 9, false), 64), None, "under a nanosecond");
        assert_eq!(ns(rate(0, 0, false), 64), None);
        assert_eq!(ns(rate(1, -30, false), 64), None);
        assert_eq!(ns(rate(u64::MAX, 38, false), 64), None);
    }

    #[test]
    fn gaps_begin_where_the_frame_ends() {
        let line = LineRate::GIGABIT;
        assert_eq!(line.period(64, 12).map(Period::ns), Some(608));
        assert_eq!(line.period_with_ns(64, 96).map(Period::ns), Some(608));
        assert_eq!(
            line.period_with_ns(125, 9_000).map(Period::ns),
            Some(10_000)
        );
        let period = line.period(64, 11).unwrap();
        assert!(!line.can_carry(64, period));
        assert!(line.can_carry(63, period));
        assert_eq!(LineRate(0).period(64, 12), None);
    }

    #[test]
    fn the_nearer_end_counts() {
        let step = |pacing| Step { size: 64, pacing };
        let paced = step(Pacing::Paced(LineRate::GIGABIT.period(125, 0).unwrap()));
        assert_eq!(paced.frames(None, None), None);
        assert_eq!(paced.frames(Some(7), None), Some(7));
        assert_eq!(paced.frames(Some(7), Some(3_000)), Some(3));
        assert_eq!(paced.frames(Some(2), Some(3_000)), Some(2));
        assert_eq!(step(Pacing::FlatOut).frames(Some(7), Some(1)), Some(7));
        assert_eq!(step(Pacing::FlatOut).frames(None, Some(1)), None);
    }
}
