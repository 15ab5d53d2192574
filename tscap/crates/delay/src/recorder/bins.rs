//! How many delays lie in which range.

use crate::schema::Bin;

/// Binary digits of a magnitude that tell ranges apart, behind the first one: a range is at
/// most 1/128 of its values wide.
const DIGITS: u32 = 7;
/// Ranges of a sign: all magnitudes up to 2^63.
const RANGES: usize = ((64 - DIGITS as usize) << DIGITS) + (1 << DIGITS);

/// Ranges of equal width up to 2^8, then 128 for each power of two. Memory: 2 · 58 kB.
#[derive(Debug)]
pub(super) struct Bins {
    negative: Vec<u64>,
    rest: Vec<u64>,
}

impl Bins {
    pub fn new() -> Self {
        Self {
            negative: vec![0; RANGES],
            rest: vec![0; RANGES],
        }
    }

    #[inline]
    pub fn add(&mut self, delay_ns: i64) {
        let ranges = match delay_ns {
            ..0 => &mut self.negative,
            0.. => &mut self.rest,
        };
        ranges[range_of(delay_ns.unsigned_abs())] += 1;
    }

    /// Those that are not empty, in ascending order; the outermost end with the least and the
    /// greatest value.
    pub fn finish(&self, min_ns: i64, max_ns: i64) -> Vec<Bin> {
        let occupied = |ranges: &[u64]| -> Vec<(usize, u64)> {
            let all = ranges.iter().copied().enumerate();
            all.filter(|(_, n)| *n > 0).collect()
        };
        let negative = occupied(&self.negative)
            .into_iter()
            .rev()
            .map(|(range, n)| {
                let (least, greatest) = ends(range);
                (-greatest, -least, n)
            });
        let rest = occupied(&self.rest).into_iter().map(|(range, n)| {
            let (least, greatest) = ends(range);
            (least, greatest, n)
        });
        let within = |ns: i128| ns.clamp(min_ns.into(), max_ns.into()) as i64;
        let bin = |(from, to, n)| Bin {
            from_ns: within(from),
            to_ns: within(to),
            n,
        };
        negative.chain(rest).map(bin).collect()
    }
}

/// The range of a magnitude.
fn range_of(magnitude: u64) -> usize {
    let excess = (u64::BITS - magnitude.leading_zeros()).saturating_sub(DIGITS + 1);
    ((u64::from(excess) << DIGITS) + (magnitude >> excess)) as usize
}

/// The least and the greatest magnitude of a range.
fn ends(range: usize) -> (i128, i128) {
    let excess = (range >> DIGITS).saturating_sub(1);
    let digits = (range - (excess << DIGITS)) as i128;
    (digits << excess, ((digits + 1) << excess) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_end_to_end() {
        let mut next = 0;
        for range in 0..RANGES {
            let (least, greatest) = ends(range);
            assert_eq!(least, next);
            assert!(greatest - least <= least >> DIGITS);
            for magnitude in [least, greatest] {
                if let Ok(magnitude) = u64::try_from(magnitude) {
                    assert_eq!(range_of(magnitude), range);
                }
            }
            next = greatest + 1;
        }
        assert_eq!(next, 1 << 64);
    }

    #[test]
    fn bins_are_in_ascending_order() {
        let mut bins = Bins::new();
        let delays = [-1_000_000, -3, 0, 0, 3, 1_000_000, 1_000_001];
        delays.iter().for_each(|delay| bins.add(*delay));
        let all = bins.finish(-1_000_000, 1_000_001);
        let bin = |from_ns, to_ns, n| Bin { from_ns, to_ns, n };
        assert_eq!(all[1..4], [bin(-3, -3, 1), bin(0, 0, 2), bin(3, 3, 1)]);
        assert_eq!((all[0].from_ns, all[0].n), (-1_000_000, 1));
        let last = all[all.len() - 1];
        assert_eq!((last.to_ns, last.n), (1_000_001, 2));
        assert!(all.is_sorted_by(|one, next| one.to_ns < next.from_ns));
    }

    #[test]
    fn extreme_delays_have_a_range() {
        let mut bins = Bins::new();
        [i64::MIN, i64::MAX]
            .iter()
            .for_each(|delay| bins.add(*delay));
        let all = bins.finish(i64::MIN, i64::MAX);
        assert_eq!((all[0].from_ns, all[1].to_ns), (i64::MIN, i64::MAX));
    }
}
