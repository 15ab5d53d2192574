//! Ranges that grow with their values, and counts of them in memory of a fixed size.

use serde::{Deserialize, Serialize};

/// How many values lie in a range of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// The least in it, ns.
    pub from_ns: i64,
    /// The greatest in it, ns.
    pub to_ns: i64,
    /// How many there are.
    pub n: u64,
}

/// Ranges of equal width up to 2^(DIGITS + 1), then 2^DIGITS for each power of two: a range is
/// at most 2^-DIGITS of its values wide. Gives the number of that of a magnitude.
pub(super) fn range_of<const DIGITS: u32>(magnitude: u64) -> usize {
    let excess = (u64::BITS - magnitude.leading_zeros()).saturating_sub(DIGITS + 1);
    ((u64::from(excess) << DIGITS) + (magnitude >> excess)) as usize
}

/// The least and the greatest magnitude of a range, by its number.
pub(super) fn ends<const DIGITS: u32>(range: usize) -> [i128; 2] {
    let excess = (range >> DIGITS).saturating_sub(1);
    let digits = (range - (excess << DIGITS)) as i128;
    [digits << excess, ((digits + 1) << excess) - 1]
}

/// [`ends`] of the magnitude of a value, with its sign, in ascending order.
pub(super) fn ends_around<const DIGITS: u32>(value: i64) -> [i128; 2] {
    let [least, greatest] = ends::<DIGITS>(range_of::<DIGITS>(value.unsigned_abs()));
    if value < 0 {
        [-greatest, -least]
    } else {
        [least, greatest]
    }
}

/// Binary digits that tell ranges apart, behind the first one.
const DIGITS: u32 = 4;
/// Magnitudes up to 2^37 − 1, 137 s in nanoseconds, have a range; greater ones share the last.
const MOST_BITS: u32 = 37;
/// Ranges of a sign.
const RANGES: usize = ((MOST_BITS - DIGITS) as usize + 1) << DIGITS;

/// Counts of differences to a base by ranges, each at most 1/16 of its differences wide.
/// Memory: 2.2 kB, twice that for signed differences.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    base: i64,
    /// Those of negative differences last. When a count is full all are halved: quantiles stay
    /// as they are.
    counts: Box<[u32]>,
}

impl Counts {
    pub fn new(base: i64, is_signed: bool) -> Self {
        Self {
            base,
            counts: vec![0; Self::ranges(is_signed)].into_boxed_slice(),
        }
    }

    const fn ranges(is_signed: bool) -> usize {
        if is_signed { 2 * RANGES } else { RANGES }
    }

    pub const fn heap_bytes(is_signed: bool) -> usize {
        Self::ranges(is_signed) * size_of::<u32>()
    }

    #[inline]
    pub fn add(&mut self, value: i64) {
        let difference = value.saturating_sub(self.base);
        let range = number_of(difference.unsigned_abs());
        let count = &mut self.counts[range + if difference < 0 { RANGES } else { 0 }];
        *count += 1;
        if *count == u32::MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    /// The ranges that are not empty, of values from `min` to `max`, in ascending order.
    pub fn occupied(&self, [min, max]: [i64; 2]) -> impl Iterator<Item = Bin> {
        let (rest, negative) = self.counts.split_at(RANGES);
        let negative = negative.iter().enumerate().rev().map(|(range, n)| {
            let [least, greatest] = magnitudes(range);
            (-greatest, -least, *n)
        });
        let rest = rest.iter().enumerate().map(|(range, n)| {
            let [least, greatest] = magnitudes(range);
            (least, greatest, *n)
        });
        let value = move |difference: i64| self.base.saturating_add(difference).clamp(min, max);
        let all = negative.chain(rest).filter(|(.., n)| *n > 0);
        all.map(move |(from, to, n)| Bin {
            from_ns: value(from),
            to_ns: value(to),
            n: n.into(),
        })
    }

    /// The value of this rank of `n`, from 1 for the least on: within a range, values are taken
    /// as spread evenly.
    pub fn at_rank(&self, rank: u64, n: u64, within: [i64; 2]) -> Option<i64> {
        let counted: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        // Of those that are still counted, if counts were halved.
        let rank = (u128::from(rank) * u128::from(counted)).div_ceil(u128::from(n)) as u64;
        let mut before = 0;
        self.occupied(within).find_map(|bin| {
            let place = rank.saturating_sub(before);
            before += bin.n;
            (rank <= before).then(|| {
                let width = i128::from(bin.to_ns) - i128::from(bin.from_ns);
                let part = i128::from(place) * width / i128::from(bin.n);
                (i128::from(bin.from_ns) + part) as i64
            })
        })
    }
}

fn number_of(magnitude: u64) -> usize {
    range_of::<DIGITS>(magnitude.min((1 << MOST_BITS) - 1))
}

/// The least and the greatest magnitude that a range counts.
fn magnitudes(range: usize) -> [i64; 2] {
    let [least, greatest] = ends::<DIGITS>(range).map(|end| end as i64);
    let is_last = range == RANGES - 1;
    [least, if is_last { i64::MAX } else { greatest }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_end_to_end() {
        fn check<const DIGITS: u32>() {
            let ranges = ((64 - DIGITS as usize) << DIGITS) + (1 << DIGITS);
            let mut next = 0;
            for range in 0..ranges {
                let [least, greatest] = ends::<DIGITS>(range);
                assert_eq!(least, next);
                assert!(greatest - least <= least >> DIGITS);
                for magnitude in [least, greatest] {
                    if let Ok(magnitude) = u64::try_from(magnitude) {
                        assert_eq!(range_of::<DIGITS>(magnitude), range);
                    }
                }
                next = greatest + 1;
            }
            assert_eq!(next, 1 << 64);
        }
        check::<4>();
        check::<7>();
    }

    #[test]
    fn every_magnitude_is_counted() {
        let mut next = 0;
        for range in 0..RANGES {
            let [least, greatest] = magnitudes(range);
            assert_eq!(least, next);
            assert_eq!(number_of(least.unsigned_abs()), range);
            assert_eq!(number_of(greatest.unsigned_abs()), range);
            next = greatest.wrapping_add(1);
        }
        assert_eq!(next, i64::MIN);
    }

    #[test]
    fn full_counts_are_halved_and_quantiles_stay() {
        let mut counts = Counts::new(0, false);
        counts.counts[number_of(10)] = u32::MAX - 1;
        counts.counts[number_of(1_000_000)] = u32::MAX / 2;
        let n = u64::from(u32::MAX) + u64::from(u32::MAX / 2);
        counts.add(10);
        assert!(counts.counts.iter().all(|count| *count < u32::MAX));
        let at = |rank| counts.at_rank(rank, n, [10, 1_000_000]).unwrap();
        assert!(at(n / 2) <= 10 && at(n / 10 * 9) > 900_000);
    }
}
