//! Histograms of delays, whose ranges are of different lengths, made ready to be drawn.

use tscap_delay::schema::Bin;
use tscap_document::Histogram;

/// Ranges that hold the shares from here to there decide how fine the picture is.
const MIDDLE: [f64; 2] = [0.05, 0.95];

/// In buckets as wide as the widest range among most of the delays; those that are wider
/// lie far off, and count where they begin. `None` if there is nothing to draw.
pub(super) fn histogram(bins: &[Bin]) -> Option<Histogram> {
    let all: f64 = bins.iter().map(|bin| bin.n as f64).sum();
    let length = |bin: &Bin| bin.to_ns as f64 - bin.from_ns as f64 + 1.0;
    let mut before = 0.0;
    let mut width = 0.0;
    for bin in bins {
        let share = before / all;
        before += bin.n as f64;
        if share <= MIDDLE[1] && before / all >= MIDDLE[0] {
            width = length(bin).max(width);
        }
    }
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for bin in bins {
        let start = (bin.from_ns as f64 / width).floor() * width;
        let share = bin.n as f64 / all;
        match buckets.last_mut() {
            Some((last, sum)) if *last >= start => *sum += share,
            _ => buckets.push((start, share)),
        }
    }
    Histogram::new(&buckets, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(from_ns: i64, to_ns: i64, n: u64) -> Bin {
        Bin { from_ns, to_ns, n }
    }

    /// One far off at either end.
    #[test]
    fn each_delay_is_drawn_once() {
        let far = bin(10_000, 10_063, 1);
        let bins = [bin(8, 8, 1), bin(100, 101, 4), bin(104, 107, 4), far];
        let histogram = histogram(&bins).unwrap();
        let density = histogram.density(0.0, 12_000.0);
        let drawn = density.windows(2).map(|it| (it[1].0 - it[0].0) * it[0].1);
        assert!((drawn.sum::<f64>() - 1.0).abs() < 1e-9, "{density:?}");
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert!(histogram(&[]).is_none());
        assert!(histogram(&[bin(1, 1, 0)]).is_none());
        assert!(histogram(&[bin(i64::MIN, i64::MAX, 1)]).is_none());
    }
}
