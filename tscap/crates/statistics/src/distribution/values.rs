//! What is kept of values: each one, or how many there are in ranges.

use std::borrow::Cow;

use hdrhistogram::Histogram;

use super::ALL;
use crate::at_rank;
use crate::ranges::Counts;

/// So many values are kept as they are; more go into a histogram.
pub(super) const FEW: usize = 4_096;
/// Decimal digits of the histogram: quantiles are right within 0.05 %.
const DIGITS: u8 = 3;

/// What is kept of values.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Few(Vec<i64>),
    Many(Box<Histograms>),
    Fixed(Counts),
}

impl Values {
    #[inline]
    pub fn add(&mut self, value: i64) {
        match self {
            Self::Fixed(counts) => counts.add(value),
            Self::Few(values) if values.len() < FEW => values.push(value),
            Self::Few(_) | Self::Many(_) => self.become_many(ALL).add(value, 1),
        }
    }

    /// Puts them, which lie within these ends, into histograms.
    pub fn become_many(&mut self, within: [i64; 2]) -> &mut Histograms {
        if !matches!(self, Self::Many(_)) {
            let mut histograms = Box::new(Histograms::new());
            self.each(within, |value, n| histograms.add(value, n));
            *self = Self::Many(histograms);
        }
        match self {
            Self::Many(histograms) => histograms,
            Self::Few(_) | Self::Fixed(_) => unreachable!("they were put into histograms"),
        }
    }

    /// Hands over values, which lie within these ends, with their numbers: one of each range of
    /// a histogram, in ascending order.
    pub fn each(&self, within: [i64; 2], mut then: impl FnMut(i64, u64)) {
        match self {
            Self::Few(values) => values.iter().for_each(|value| then(*value, 1)),
            Self::Many(histograms) => histograms.each(then),
            Self::Fixed(counts) => counts.occupied(within).for_each(|bin| {
                let middle = (i128::from(bin.from_ns) + i128::from(bin.to_ns)) / 2;
                then(middle as i64, bin.n);
            }),
        }
    }

    /// The same, in ascending order where they are kept as they are.
    pub fn sorted(&self) -> Cow<'_, Self> {
        let Self::Few(values) = self else {
            return Cow::Borrowed(self);
        };
        let mut values = values.clone();
        values.sort_unstable();
        Cow::Owned(Self::Few(values))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Histograms {
    /// Of the negative values' magnitudes.
    pub negative: Histogram<u64>,
    pub rest: Histogram<u64>,
}

impl Histograms {
    pub fn new() -> Self {
        let empty = Histogram::new(DIGITS).expect("three digits are allowed");
        Self {
            negative: empty.clone(),
            rest: empty,
        }
    }

    pub fn add(&mut self, value: i64, n: u64) {
        let histogram = match value {
            ..0 => &mut self.negative,
            0.. => &mut self.rest,
        };
        let recorded = histogram.record_n(value.unsigned_abs(), n);
        recorded.expect("the histogram grows with its values");
    }

    pub fn merge(&mut self, other: &Self) {
        for (own, others) in [
            (&mut self.negative, &other.negative),
            (&mut self.rest, &other.rest),
        ] {
            let added = own.add(others);
            added.expect("the histogram grows with its values");
        }
    }

    /// The least magnitude of each range, with the number of values in it, in ascending order.
    pub fn each(&self, mut then: impl FnMut(i64, u64)) {
        let ranges = |of: &Histogram<u64>| -> Vec<(i64, u64)> {
            let all = of.iter_recorded();
            let least = |value: u64| of.lowest_equivalent(value).cast_signed();
            all.map(|it| {
                (
                    least(it.value_iterated_to()),
                    it.count_since_last_iteration(),
                )
            })
            .collect()
        };
        let negative = ranges(&self.negative).into_iter().rev();
        // The magnitude of the least integer is itself.
        let negative = negative.map(|(magnitude, n)| (magnitude.wrapping_neg(), n));
        let all = negative.chain(ranges(&self.rest));
        all.for_each(|(value, n)| then(value, n));
    }

    /// The value of a rank, from 1 for the least on.
    pub fn at_rank(&self, rank: u64, negative: u64) -> i64 {
        if rank > negative {
            magnitude_at(&self.rest, rank - negative)
        } else {
            // The greatest magnitude is the least value.
            -magnitude_at(&self.negative, negative - rank + 1)
        }
    }
}

fn magnitude_at(histogram: &Histogram<u64>, rank: u64) -> i64 {
    let buckets = histogram.iter_recorded();
    let buckets = buckets.map(|it| (it.value_iterated_to(), it.count_since_last_iteration()));
    let value = at_rank(buckets, rank).unwrap_or(histogram.max());
    i64::try_from(histogram.median_equivalent(value)).unwrap_or(i64::MAX)
}
