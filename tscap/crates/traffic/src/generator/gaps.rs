//! How well a sender kept time: quantiles of its own gaps.

use serde::Serialize;
use tscap_common::gaps::{bucket_of, values_of};
use tscap_common::generator::Gaps;

use tscap_statistics::{BEYOND, at_rank};

/// Quantiles of a distribution, ns; one with fewer than ten samples beyond it is
/// not told. Each is the upper end of its bucket, so at most 1/64 too great.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Least gap, ns.
    pub min: i64,
    /// Half of the gaps are no longer, ns.
    pub p50: Option<i64>,
    /// 9 of 10 are no greater.
    pub p90: Option<i64>,
    /// 99 % of the gaps are no longer, ns.
    pub p99: Option<i64>,
    /// 99.9 % of the gaps are no longer, ns.
    pub p99_9: Option<i64>,
    /// Greatest gap, ns.
    pub max: i64,
}

/// The gaps between the starts of frames, as the sender's clock saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GapReport {
    /// Gaps that were counted.
    pub count: u64,
    /// Frames from one stamp to the next: 1, or flat out as many as share one.
    pub frames: u64,
    /// The gaps, ns.
    pub gap_ns: Quantiles,
    /// How far they were from the one meant, either way, ns; flat out there is
    /// none.
    pub error_ns: Option<Quantiles>,
}

impl GapReport {
    /// From a histogram of gaps less `period_ns` (0 flat out); `None` if nothing
    /// was counted.
    pub fn new(gaps: &Gaps, period_ns: u64, frames: u64) -> Option<Self> {
        let period = i64::try_from(period_ns).unwrap_or(i64::MAX);
        let counted = || {
            let counted = gaps.iter().copied().enumerate();
            counted.filter(|(_, count)| *count > 0)
        };
        let signed: Vec<_> = counted()
            .map(|(bucket, count)| {
                let (least, most) = values_of(bucket);
                (
                    least.saturating_add(period),
                    most.saturating_add(period),
                    count,
                )
            })
            .collect();
        let mut errors: Vec<_> = counted()
            .map(|(bucket, count)| match values_of(bucket) {
                (least, most) if most <= 0 => (-most, -least, count),
                (least, most) => (least, most, count),
            })
            .collect();
        errors.sort_unstable();
        Some(Self {
            count: counted().map(|(_, count)| count).sum(),
            frames,
            gap_ns: Quantiles::of(&signed)?,
            error_ns: match period_ns {
                0 => None,
                _ => Quantiles::of(&errors),
            },
        })
    }
}

pub(super) fn count(gaps: &mut Gaps, gap_ns: u64, period_ns: u64) {
    gaps[bucket_of(gap_ns.wrapping_sub(period_ns).cast_signed())] += 1;
}

impl Quantiles {
    /// Of values in ascending order: least, greatest, how many.
    fn of(values: &[(i64, i64, u64)]) -> Option<Self> {
        let (first, last) = (values.first()?, values.last()?);
        let total: u64 = values.iter().map(|(_, _, count)| count).sum();
        let quantile = |per_mille: u64| {
            let beyond = total * (1000 - per_mille) / 1000;
            if beyond < BEYOND {
                return None;
            }
            let values = values.iter().map(|(_, most, count)| (*most, *count));
            at_rank(values, total - beyond)
        };
        Some(Self {
            min: first.0,
            p50: quantile(500),
            p90: quantile(900),
            p99: quantile(990),
            p99_9: quantile(999),
            max: last.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use tscap_common::gaps::BUCKETS;

    use super::*;

    fn gaps(gaps_ns: &[(u64, u64)], period_ns: u64) -> Box<Gaps> {
        let mut histogram = Box::new([0; BUCKETS]);
        for (gap_ns, times) in gaps_ns {
            for _ in 0..*times {
                count(&mut histogram, *gap_ns, period_ns);
            }
        }
        histogram
    }

    #[test]
    fn early_and_late_are_both_errors() {
        let histogram = gaps(&[(990, 500), (1_000, 480), (1_030, 20)], 1_000);
        let report = GapReport::new(&histogram, 1_000, 1).unwrap();
        assert_eq!(report.count, 1000);
        let gap = report.gap_ns;
        assert_eq!((gap.min, gap.p50, gap.max), (990, Some(990), 1_030));
        assert_eq!((gap.p90, gap.p99), (Some(1_000), Some(1_030)));
        assert_eq!(gap.p99_9, None, "one sample beyond it");
        let error = report.error_ns.unwrap();
        assert_eq!(
            (error.min, error.p50, error.p99, error.max),
            (0, Some(10), Some(30), 30)
        );
    }

    #[test]
    fn flat_out_has_no_errors() {
        let histogram = gaps(&[(100, 3)], 0);
        let report = GapReport::new(&histogram, 0, 16).unwrap();
        assert_eq!(report.error_ns, None);
        assert_eq!(report.gap_ns.p50, None, "one sample beyond it");
        let (least, most) = (report.gap_ns.min, report.gap_ns.max);
        assert!(
            least <= 100 && 100 <= most && most - least < 2,
            "{report:?}"
        );
    }

    #[test]
    fn nothing_counted_is_nothing_told() {
        assert_eq!(GapReport::new(&[0; BUCKETS], 1_000, 1), None);
    }
}
