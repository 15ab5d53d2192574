//! Histograms made ready to be drawn.

use tscap_statistics::at_rank;

/// Most bins across a chart: one for four of its pixels.
const BINS: f64 = 140.0;

/// Buckets by their lower ends, with the share of all values in each.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<(f64, f64)>,
    width: f64,
    /// Finer bins would show the instrument's steps.
    resolution: f64,
}

impl Histogram {
    /// `None` if there is nothing to draw.
    pub fn new(buckets: &[(f64, f64)], width: f64) -> Option<Self> {
        let is_sound = |(low, share): &(f64, f64)| low.abs() < 1e15 && (0.0..=1.0).contains(share);
        let mut buckets: Vec<_> = buckets.iter().copied().filter(is_sound).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let is_some = !buckets.is_empty() && (1e-6..1e15).contains(&width);
        is_some.then_some(Self {
            buckets,
            width,
            resolution: 0.0,
        })
    }

    /// The same of values that were measured in steps of this.
    pub fn in_steps(self, resolution: f64) -> Self {
        Self { resolution, ..self }
    }

    /// The end of the bucket up to which at least this share of all values lies.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.buckets.last().map(|(low, _)| *low);
        let low = at_rank(self.buckets.iter().copied(), share).or(last);
        low.map_or(0.0, |low| low + self.width)
    }

    /// Where most values are: nothing is cut that is as near to the middle nine
    /// tenths as they are wide.
    pub fn main_part(&self) -> [f64; 2] {
        let all: f64 = self.buckets.iter().map(|(_, share)| share).sum();
        let [low, high] = [0.05, 0.95].map(|share| self.quantile(share * all));
        let room = (high - low).max(self.width);
        let ends = [self.least(), self.quantile(f64::INFINITY)];
        [
            (low - self.width - room).max(ends[0]),
            (high + room).min(ends[1]),
        ]
    }

    /// Lower end of the least bucket.
    fn least(&self) -> f64 {
        self.buckets.first().map_or(0.0, |(low, _)| *low)
    }

    /// The share of all values that is not in buckets from `low` to `high`.
    pub fn outside(&self, low: f64, high: f64) -> f64 {
        let shown = self.buckets.iter();
        let shown = shown.filter(|(start, _)| *start >= low && start + self.width <= high);
        (1.0 - shown.map(|(_, share)| share).sum::<f64>()).max(0.0)
    }

    /// Share by nanosecond from `low` to `high`, in steps: each value holds up to
    /// the next. Bins are whole numbers of buckets, so that none has more than
    /// another.
    pub fn density(&self, low: f64, high: f64) -> Vec<(f64, f64)> {
        let finest = ((high - low) / BINS).max(self.resolution);
        let buckets = (finest / self.width).ceil().max(1.0);
        let bin = buckets * self.width;
        let first = self.least() + ((low - self.least()) / self.width).floor() * self.width;
        let count = ((high - first) / bin).ceil().clamp(1.0, 2.0 * BINS) as usize;
        let mut bins = vec![0.0; count];
        for (start, share) in &self.buckets {
            let index = ((start + self.width / 2.0 - first) / bin).floor();
            if index >= 0.0
                && let Some(sum) = bins.get_mut(index as usize)
            {
                *sum += share / bin;
            }
        }
        let ends = (0..=count).map(|index| (first + index as f64 * bin).clamp(low, high));
        let last = bins.last().copied();
        ends.zip(bins.iter().copied().chain(last)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram() -> Histogram {
        let buckets = [(10.0, 0.5), (11.0, 0.25), (13.0, 0.2), (99.0, 0.05)];
        Histogram::new(&buckets, 1.0).unwrap()
    }

    #[test]
    fn nothing_sound_is_no_histogram() {
        assert!(Histogram::new(&[], 1.0).is_none());
        assert!(Histogram::new(&[(1.0, 1.0)], 0.0).is_none());
        assert!(Histogram::new(&[(1.0, 1.0)], f64::NAN).is_none());
        let odd = [
            (f64::NAN, 0.5),
            (1.0, f64::INFINITY),
            (1e300, 0.1),
            (2.0, -1.0),
        ];
        assert!(Histogram::new(&odd, 1.0).is_none());
    }

    #[test]
    fn quantiles_and_what_lies_outside() {
        let of = histogram();
        assert_eq!(
            (of.least(), of.quantile(0.5), of.quantile(0.9)),
            (10.0, 11.0, 14.0)
        );
        assert_eq!(of.quantile(1.0), 100.0);
        assert!((of.outside(11.0, 14.0) - 0.55).abs() < 1e-12);
        assert!((of.outside(0.0, 1.0) - 1.0).abs() < 1e-12);
    }

    /// Two steps of 10 ns, each a little uneven.
    #[test]
    fn no_bin_is_finer_than_the_instrument() {
        let buckets = [(30.0, 0.4), (31.0, 0.1), (40.0, 0.5)];
        let of = Histogram::new(&buckets, 1.0).unwrap().in_steps(10.0);
        let density = of.density(20.0, 60.0);
        let levels: Vec<f64> = density.iter().map(|(_, level)| level * 10.0).collect();
        assert_eq!(levels, [0.0, 0.5, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn what_is_far_off_is_cut() {
        assert_eq!(histogram().main_part(), [10.0, 17.0]);
        let single = Histogram::new(&[(30.0, 0.99), (900.0, 0.01)], 1.0).unwrap();
        assert_eq!(single.main_part(), [30.0, 32.0]);
    }

    /// The area below is the share of what is shown.
    #[test]
    fn a_density_keeps_every_share() {
        for (low, high, share) in [(0.0, 100.0, 1.0), (0.0, 20.0, 0.95), (0.0, 1e6, 1.0)] {
            let density = histogram().density(low, high);
            let area: f64 = density
                .windows(2)
                .map(|of| (of[1].0 - of[0].0) * of[0].1)
                .sum();
            assert!((area - share).abs() < 1e-9, "{low} to {high}: {area}");
            assert!(density.len() < 400, "{}", density.len());
        }
    }
}
