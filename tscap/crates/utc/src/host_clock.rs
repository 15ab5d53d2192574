//! How far the host's clock has moved from a device since both were read.

use crate::bytes::growth_ns;
use tscap_time::{MonoRawNs, RealNs, raw_clock};

/// CLOCK_REALTIME before and after a reading of CLOCK_MONOTONIC_RAW, which nobody slews or sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostClock {
    real: [RealNs; 2],
    raw: MonoRawNs,
}

impl HostClock {
    pub fn read() -> Self {
        let before = RealNs::now();
        let raw = raw_clock::by_vdso();
        Self {
            real: [before, RealNs::now()],
            raw,
        }
    }

    /// Most that CLOCK_REALTIME and a clock that is not slewed have parted since `then`, ns: by how
    /// much CLOCK_REALTIME was slewed or set, and by `drift_ppb` of the time.
    pub fn parted_ns(&self, then: &Self, drift_ppb: u64) -> u64 {
        let raw_ns = i128::from(self.raw.0) - i128::from(then.raw.0);
        let moved = |now: RealNs, then: RealNs| {
            let real_ns = i128::from(now.0) - i128::from(then.0);
            u64::try_from((real_ns - raw_ns).unsigned_abs()).unwrap_or(u64::MAX)
        };
        let moved_ns = moved(self.real[1], then.real[0]).max(moved(self.real[0], then.real[1]));
        let elapsed_ns = u64::try_from(raw_ns).unwrap_or(0);
        moved_ns.saturating_add(growth_ns(elapsed_ns, drift_ppb))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u64 = 1_700_000_000_000_000_000;

    /// Read `width` ns wide, with the host's clock `ahead` ns ahead of the raw one.
    fn read(raw_ns: u64, ahead_ns: i64, width_ns: u64) -> HostClock {
        let real = (EPOCH + raw_ns).saturating_add_signed(ahead_ns);
        HostClock {
            real: [RealNs(real), RealNs(real + width_ns)],
            raw: MonoRawNs(raw_ns),
        }
    }

    #[test]
    fn what_slews_or_sets_the_clock_parts_it_from_a_device() {
        let then = read(1_000_000_000, 0, 0);
        // A second later: 50 ppm of it, whatever the daemon does.
        assert_eq!(read(2_000_000_000, 0, 0).parted_ns(&then, 50_000), 50_000);
        // chronyd slews by 83,333 ppm at most; somebody sets the clock back by a second.
        let slewed = read(2_000_000_000, 83_333_000, 0);
        assert_eq!(slewed.parted_ns(&then, 50_000), 83_383_000);
        let set = read(2_000_000_000, -1_000_000_000, 0);
        assert_eq!(set.parted_ns(&then, 0), 1_000_000_000);
    }

    #[test]
    fn a_wide_reading_says_less() {
        let [then, now] = [read(5, 0, 100), read(5, 0, 30)];
        assert_eq!(now.parted_ns(&then, 50_000), 100);
        assert_eq!(then.parted_ns(&now, 50_000), 100);
    }
}
