//! How long frames took from their hardware stamp to their own: from the interface to the
//! program in its driver.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest delay that is told from longer ones, ns: a minute.
const LONGEST_NS: u64 = 60_000_000_000;
/// Significant digits of quantiles.
const DIGITS: u8 = 3;

/// The delays of an interface's frames.
#[derive(Clone, Debug)]
pub struct Delays {
    /// Those below 0, which errors of both clocks can make, count as 0.
    counts: Histogram<u64>,
    range_ns: Option<(i64, i64)>,
}

/// Delays from an interface to the program in its driver, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelaySummary {
    /// Frames whose delay is known.
    pub frames: u64,
    /// The least: below 0 by no more than the bound, if clocks are what they are taken for.
    pub least_ns: i64,
    /// Median, to 0.1 %; none is below 0.
    pub median_ns: u64,
    /// 99 % are at most this, to 0.1 %.
    pub p99_ns: u64,
    /// Greatest delay, ns.
    pub greatest_ns: i64,
}

impl Default for Delays {
    fn default() -> Self {
        let counts = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Self {
            counts: counts.expect("bounds and digits that a histogram can have"),
            range_ns: None,
        }
    }
}

impl Delays {
    #[inline]
    pub(super) fn record(&mut self, delay_ns: i64) {
        self.counts
            .saturating_record(u64::try_from(delay_ns).unwrap_or(0));
        let (least, greatest) = self.range_ns.unwrap_or((delay_ns, delay_ns));
        self.range_ns = Some((least.min(delay_ns), greatest.max(delay_ns)));
    }

    /// Takes in those of another writer.
    pub fn add(&mut self, other: &Self) {
        let added = self.counts.add(&other.counts);
        added.expect("both have the same bounds");
        if let Some((least, greatest)) = other.range_ns {
            let mine = self.range_ns.unwrap_or((least, greatest));
            self.range_ns = Some((mine.0.min(least), mine.1.max(greatest)));
        }
    }

    /// What they were like; `None` if there were none.
    pub fn summary(&self) -> Option<DelaySummary> {
        let (least_ns, greatest_ns) = self.range_ns?;
        Some(DelaySummary {
            frames: self.counts.len(),
            least_ns,
            median_ns: self.counts.value_at_quantile(0.5),
            p99_ns: self.counts.value_at_quantile(0.99),
            greatest_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_summed_up_over_writers() {
        let (mut one, mut other) = (Delays::default(), Delays::default());
        assert_eq!(one.summary(), None);
        (1..=90).for_each(|us| one.record(us * 1_000));
        (91..=98).for_each(|us| other.record(us * 1_000));
        other.record(-40);
        other.record(i64::MAX);
        one.add(&other);
        one.add(&Delays::default());
        let summary = one.summary().unwrap();
        assert_eq!(summary.frames, 100);
        assert_eq!((summary.least_ns, summary.greatest_ns), (-40, i64::MAX));
        assert!(summary.median_ns.abs_diff(49_000) <= 49, "{summary:?}");
        assert!(summary.p99_ns.abs_diff(98_000) <= 98, "{summary:?}");
    }
}
