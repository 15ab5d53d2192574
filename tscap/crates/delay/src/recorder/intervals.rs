//! Delays over time.

use crate::schema::Interval;

/// Most intervals. When there would be more, two become one.
const MOST: usize = 512;
/// An interval at the start, ns.
const SHORTEST_NS: u64 = 1_000_000;

/// Equal intervals from the start on. Memory: 25 kB.
#[derive(Debug)]
pub(super) struct Intervals {
    length_ns: u64,
    all: Vec<Of>,
    /// The interval of the latest packet, and when it begins: the next one is mostly in it too.
    latest: usize,
    begins_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Of {
    n: u64,
    sum: i128,
    min: i64,
    max: i64,
}

impl Of {
    const NOTHING: Self = Self {
        n: 0,
        sum: 0,
        min: i64::MAX,
        max: i64::MIN,
    };

    fn with(self, other: Self) -> Self {
        Self {
            n: self.n + other.n,
            sum: self.sum + other.sum,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

impl Intervals {
    pub fn new() -> Self {
        Self {
            length_ns: SHORTEST_NS,
            all: vec![Of::NOTHING; MOST],
            latest: 0,
            begins_ns: 0,
        }
    }

    #[inline]
    pub fn add(&mut self, at_ns: u64, delay_ns: i64) {
        if at_ns.wrapping_sub(self.begins_ns) >= self.length_ns {
            self.find(at_ns);
        }
        let interval = &mut self.all[self.latest];
        *interval = interval.with(Of {
            n: 1,
            sum: delay_ns.into(),
            min: delay_ns,
            max: delay_ns,
        });
    }

    #[cold]
    fn find(&mut self, at_ns: u64) {
        while at_ns / self.length_ns >= MOST as u64 {
            self.double();
        }
        let latest = at_ns / self.length_ns;
        (self.latest, self.begins_ns) = (latest as usize, latest * self.length_ns);
    }

    #[cold]
    fn double(&mut self) {
        for index in 0..MOST {
            self.all[index] = if index < MOST / 2 {
                self.all[2 * index].with(self.all[2 * index + 1])
            } else {
                Of::NOTHING
            };
        }
        self.length_ns *= 2;
    }

    /// Those in which there was a packet.
    pub fn finish(&self) -> Vec<Interval> {
        let length_s = self.length_ns as f64 / 1e9;
        let all = self.all.iter().enumerate();
        let interval = |(index, of): (usize, &Of)| Interval {
            at_s: index as f64 * length_s,
            n: of.n,
            min_ns: of.min,
            mean_ns: of.sum as f64 / of.n as f64,
            max_ns: of.max,
        };
        all.filter(|(_, of)| of.n > 0).map(interval).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_with_the_measurement() {
        let mut intervals = Intervals::new();
        intervals.add(0, 5);
        intervals.add(1_999_999, 10);
        let two = intervals.finish();
        assert_eq!([two[0].at_s, two[1].at_s], [0.0, 0.001]);
        intervals.add(512_000_000, -7);
        let expected = Interval {
            at_s: 0.0,
            n: 2,
            min_ns: 5,
            mean_ns: 7.5,
            max_ns: 10,
        };
        let found = intervals.finish();
        assert_eq!((found.len(), found[0]), (2, expected));
        assert_eq!((found[1].at_s, found[1].n, found[1].max_ns), (0.512, 1, -7));
    }

    /// Also of a measurement of centuries.
    #[test]
    fn every_packet_is_in_one() {
        let mut intervals = Intervals::new();
        let times = (0..60).map(|power| 3u64 << power);
        let mut sum = 0;
        for (delay, at_ns) in times.chain([u64::MAX]).enumerate() {
            intervals.add(at_ns, delay as i64);
            sum += delay as i64;
        }
        let all = intervals.finish();
        assert_eq!(all.iter().map(|it| it.n).sum::<u64>(), 61);
        let total: f64 = all.iter().map(|it| it.mean_ns * it.n as f64).sum();
        assert!((total - sum as f64).abs() < 1e-6);
        assert!(all.is_sorted_by(|one, next| one.at_s < next.at_s) && all.len() <= MOST);
    }
}
