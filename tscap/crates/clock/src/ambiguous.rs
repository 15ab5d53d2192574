//! Stamps that may be of either side of an event of the clocks, by their values.

use super::RawStamp;
use super::segments::STAMPS_WAIT;

/// Ranges of one event: values of before it, of between it and another one that no reading of
/// use tells apart, and of after it.
pub(super) const PARTS: usize = 3;
/// Ranges at once: those of the events that stamps may wait from, and of one more.
const MOST: usize = PARTS * (STAMPS_WAIT + 2);

/// All stamps that are ambiguous at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ambiguous {
    hull: StampRange,
    parts: [StampRange; MOST],
}

impl Ambiguous {
    pub(super) const NONE: Self = Self {
        hull: StampRange::NONE,
        parts: [StampRange::NONE; MOST],
    };

    /// Those of all these ranges; what is beyond the most of them is joined to the last.
    pub(super) fn of(ranges: impl IntoIterator<Item = StampRange>) -> Self {
        let mut all = Self::NONE;
        let ranges = ranges
            .into_iter()
            .filter(|range| *range != StampRange::NONE);
        for (index, range) in ranges.enumerate() {
            let part = &mut all.parts[index.min(MOST - 1)];
            *part = part.hull(range);
            all.hull = all.hull.hull(range);
        }
        all
    }

    /// A range that has all of them, and others too where there are several parts: what is
    /// not in it is certain at one comparison.
    #[inline]
    pub fn hull(&self) -> StampRange {
        self.hull
    }

    /// Whether the stamp is one of them.
    #[inline]
    pub fn contains(&self, stamp: RawStamp) -> bool {
        self.hull.contains(stamp) && self.parts.iter().any(|part| part.contains(stamp))
    }
}

/// The stamps after one and before another, which may be less: a counter went back, and these
/// are those after the one and those before the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampRange {
    first: u64,
    count: u64,
}

impl StampRange {
    pub(super) const NONE: Self = Self { first: 0, count: 0 };
    const ALL: Self = Self {
        first: 0,
        count: u64::MAX,
    };

    /// None of them where the one follows on the other.
    pub(super) fn new(after: u64, before: u64) -> Self {
        let first = after.wrapping_add(1);
        match before.wrapping_sub(first) {
            0 => Self::NONE,
            count => Self { first, count },
        }
    }

    /// The first and the last of them, which is less where a counter went back; `None` if there
    /// are none.
    pub fn ends(self) -> Option<[RawStamp; 2]> {
        let last = self.count.checked_sub(1)?;
        Some([self.first, self.first.wrapping_add(last)].map(RawStamp))
    }

    /// Whether the stamp is one of them.
    #[inline]
    pub fn contains(self, stamp: RawStamp) -> bool {
        stamp.0.wrapping_sub(self.first) < self.count
    }

    /// The shortest that has all of both.
    pub(super) fn hull(self, other: Self) -> Self {
        if self == Self::NONE || other == Self::NONE {
            return if self == Self::NONE { other } else { self };
        }
        let joined = |one: Self, other: Self| {
            let end = other.first.wrapping_sub(one.first);
            let count = one.count.max(end.checked_add(other.count)?);
            Some(Self { count, ..one })
        };
        let both = [joined(self, other), joined(other, self)];
        let shortest = both.into_iter().flatten().min_by_key(|hull| hull.count);
        shortest.unwrap_or(Self::ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contained(all: &Ambiguous, stamps: [u64; 6]) -> [bool; 6] {
        stamps.map(|stamp| all.contains(RawStamp(stamp)))
    }

    #[test]
    fn a_stamp_is_in_one_of_the_ranges_and_all_are_in_the_hull() {
        let all = Ambiguous::of([StampRange::new(10, 20), StampRange::new(39, 50)]);
        let stamps = [10, 11, 19, 30, 40, 50];
        let expected = [false, true, true, false, true, false];
        assert_eq!(contained(&all, stamps), expected);
        assert_eq!(all.hull(), StampRange::new(10, 50));
        assert!((0..9).all(|stamp| !Ambiguous::NONE.contains(RawStamp(stamp))));
    }

    #[test]
    fn values_after_a_counter_that_went_back_are_those_beyond_either_end() {
        let back = StampRange::new(1_000, 500);
        let all = Ambiguous::of([back, StampRange::new(499, 600)]);
        let stamps = [0, 499, 599, 600, 1_000, u64::MAX];
        let expected = [true, true, true, false, false, true];
        assert_eq!(contained(&all, stamps), expected);
        assert_eq!(
            all.hull(),
            StampRange::new(1_000, 600),
            "the shorter way round"
        );
    }

    #[test]
    fn too_many_ranges_are_joined_rather_than_left_out() {
        let range = |n: u64| StampRange::new(100 * n, 100 * n + 50);
        let all = Ambiguous::of((0..20).map(range));
        assert!((0..20).all(|n| all.contains(RawStamp(100 * n + 49))));
        assert!(!all.contains(RawStamp(150)));
        let far = [
            StampRange::new(0, 1 << 63),
            StampRange::new((1 << 63) - 9, 5),
        ];
        let all = Ambiguous::of(far);
        assert!(
            [0, 1, 1 << 62, u64::MAX - 1]
                .iter()
                .all(|n| all.contains(RawStamp(*n)))
        );
    }
}
