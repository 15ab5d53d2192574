//! A flow over time.

use super::schema::Interval;

/// Most intervals. When there would be more, two become one.
const MOST: usize = 64;
/// An interval at the start, ns.
const SHORTEST_NS: u64 = 10_000_000;

/// Equal intervals from the start of the measurement on. Memory: 0.5 kB.
#[derive(Clone, Debug)]
pub(super) struct Series {
    length_ns: u64,
    all: [Of; MOST],
}

#[derive(Clone, Copy, Debug, Default)]
struct Of {
    packets: u32,
    longest_ns: f32,
}

impl Of {
    fn with(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

impl Series {
    pub fn new() -> Self {
        Self {
            length_ns: SHORTEST_NS,
            all: [Of::default(); MOST],
        }
    }

    /// A packet at this time since the start, so long after the one before.
    #[inline]
    pub fn add(&mut self, at_ns: u64, interval_ns: i64) {
        while at_ns / self.length_ns >= MOST as u64 {
            self.double();
        }
        let interval = &mut self.all[(at_ns / self.length_ns) as usize];
        *interval = interval.with(Of {
            packets: 1,
            longest_ns: interval_ns as f32,
        });
    }

    #[cold]
    fn double(&mut self) {
        for index in 0..MOST {
            self.all[index] = if index < MOST / 2 {
                self.all[2 * index].with(self.all[2 * index + 1])
            } else {
                Of::default()
            };
        }
        self.length_ns *= 2;
    }

    /// Those in which there was a packet.
    pub fn intervals(&self) -> Vec<Interval> {
        let length_s = self.length_ns as f64 / 1e9;
        let all = self.all.iter().enumerate();
        let interval = |(index, of): (usize, &Of)| Interval {
            at_s: index as f64 * length_s,
            packets: of.packets.into(),
            longest_ns: of.longest_ns.into(),
        };
        all.filter(|(_, of)| of.packets > 0).map(interval).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_with_the_measurement() {
        let mut series = Series::new();
        series.add(0, 0);
        series.add(15_000_000, 15_000_000);
        assert_eq!(series.intervals().len(), 2);
        series.add(640_000_000, 625_000_000);
        let all = series.intervals();
        assert_eq!((all.len(), all[0].packets, all[1].at_s), (2, 2, 0.64));
        assert_eq!(all[0].longest_ns, 15_000_000.0);
        // A measurement of centuries.
        series.add(u64::MAX, 1);
        let all = series.intervals();
        assert_eq!(all.iter().map(|it| it.packets).sum::<u64>(), 4);
    }
}
