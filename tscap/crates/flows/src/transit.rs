//! The delay variation of a media stream, without the clock of its sender.

use super::schema::Figures;
use tscap_clock::{CounterReport, RawStamp, interval_ns};
use tscap_statistics::Distribution;

/// How long the least delay is looked for before an older one is forgotten, ns: a clock of the
/// media that runs 100 ppm off moves delays by 3 ms in the longest time that this takes.
const AGE_NS: i64 = 10_000_000_000;
/// The longest time between two packets that are compared, ns.
const LONGEST_NS: u64 = 30_000_000_000;
/// Roundings of intervals that add up in it, ns.
const ROUNDED_NS: u64 = 3;

/// Arrivals less times of sampling, of which each is compared with the least of the last 10 to
/// 30 s.
#[derive(Clone, Debug)]
pub(super) struct Transit {
    rate: u32,
    /// The latest timestamp, and all that they have advanced since the first, in units of the
    /// media's clock.
    timestamp: u32,
    advanced: i64,
    /// The first packet of the current span, and when it came after the first of all.
    origin: RawStamp,
    origin_ns: i64,
    /// The least of the current span, and of the one before.
    least: i64,
    least_before: Option<i64>,
}

impl Transit {
    /// With the first packet of a stream whose clock has so many Hz.
    pub fn new(timestamp: u32, stamp: RawStamp, rate: u32) -> Self {
        Self {
            rate,
            timestamp,
            advanced: 0,
            origin: stamp,
            origin_ns: 0,
            least: 0,
            least_before: None,
        }
    }

    /// How much longer than the fastest of the last seconds this packet took, ns; `None` where
    /// the clock of the stamps went back.
    #[inline]
    pub fn variation(
        &mut self,
        timestamp: u32,
        stamp: RawStamp,
        counter: Option<&CounterReport>,
    ) -> Option<i64> {
        let step = timestamp.wrapping_sub(self.timestamp).cast_signed();
        self.timestamp = timestamp;
        self.advanced += i64::from(step);
        let since = interval_ns(self.origin, stamp, counter);
        let sampled = i128::from(self.advanced) * 1_000_000_000 / i128::from(self.rate);
        let transit = (i128::from(self.origin_ns) + i128::from(since) - sampled) as i64;
        if since < 0 {
            return None;
        }
        if since >= AGE_NS {
            self.least_before = (since < 2 * AGE_NS).then_some(self.least);
            self.least = transit;
            self.origin = stamp;
            self.origin_ns = self.origin_ns.saturating_add(since);
        }
        self.least = self.least.min(transit);
        let least = self
            .least_before
            .map_or(self.least, |it| it.min(self.least));
        Some(transit.saturating_sub(least))
    }
}

/// The figures of variations by a clock of so many Hz.
pub(super) fn figures(
    values: &Distribution,
    rate: u32,
    bound_ns: impl Fn(u64) -> Option<u64>,
) -> Option<Figures> {
    // A time of sampling is rounded to a unit of the media's clock.
    let unit_ns = 1_000_000_000_u64.div_ceil(u64::from(rate));
    let bound_ns = bound_ns(LONGEST_NS).map(|it| it.saturating_add(ROUNDED_NS + unit_ns));
    let summary = values.summary()?;
    Some(Figures::of(summary, |_| bound_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Every 20 ms for two minutes, by a clock that is 100 ppm fast or slow; each tenth packet is
    /// 5 ms late.
    #[test]
    fn a_clock_that_drifts_adds_little() {
        for drift in [-100_i64, 100] {
            let mut transit = Transit::new(u32::MAX - 800, RawStamp(0), 8_000);
            let mut worst = [0, 0];
            for number in 1..6_000_u32 {
                let late = u64::from(number % 10 == 0);
                let sent = i64::from(number) * 20_000_000;
                let sent = sent + sent * drift / 1_000_000;
                let came = RawStamp(sent.unsigned_abs() + late * 5 * MS);
                let timestamp = (u32::MAX - 800).wrapping_add(number * 160);
                let variation = transit.variation(timestamp, came, None).unwrap();
                let worst = &mut worst[late as usize];
                *worst = variation.max(*worst);
            }
            assert!(worst[0] <= 3_000_000, "{drift}: {worst:?}");
            assert!(
                (4_990_000..=8_000_000).contains(&worst[1]),
                "{drift}: {worst:?}"
            );
        }
    }

    #[test]
    fn an_old_least_delay_is_forgotten() {
        let mut transit = Transit::new(0, RawStamp(0), 8_000);
        let mut at = |ms: u64, late_ms: u64| {
            transit.variation(8 * ms as u32, RawStamp((ms + late_ms) * MS), None)
        };
        assert_eq!(at(20, 0), Some(0));
        // The route is longer from here on.
        assert_eq!(at(5_000, 30), Some(30_000_000));
        assert_eq!(at(12_000, 30), Some(30_000_000));
        assert_eq!(at(23_000, 30), Some(0));
        // After a pause the first is the fastest.
        assert_eq!(at(60_000, 90), Some(0));
        assert_eq!(at(59_000, 0), None);
    }
}
