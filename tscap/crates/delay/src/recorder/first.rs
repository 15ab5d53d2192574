//! The first packets, one by one.

use crate::schema::First;

/// How long they are looked at from the first one on, ns.
const SPAN_NS: u64 = 200_000_000;
/// Most that are kept. When there are more, every other one is dropped.
const MOST: usize = 4_096;

/// The packets of the first 200 ms, thinned evenly. Memory: 64 kB.
#[derive(Debug)]
pub(super) struct FirstPackets {
    /// When the first one entered, since the start, ns.
    from_ns: Option<u64>,
    /// One of so many is kept.
    every: u64,
    seen: u64,
    kept: Vec<First>,
}

impl FirstPackets {
    pub fn new() -> Self {
        Self {
            from_ns: None,
            every: 1,
            seen: 0,
            kept: Vec::with_capacity(MOST),
        }
    }

    #[inline]
    pub fn add(&mut self, at_ns: u64, delay_ns: i64) {
        let from_ns = *self.from_ns.get_or_insert(at_ns);
        let at_ns = at_ns.saturating_sub(from_ns);
        if at_ns < SPAN_NS {
            self.keep(First { at_ns, delay_ns });
        }
    }

    fn keep(&mut self, packet: First) {
        let is_kept = self.seen.is_multiple_of(self.every);
        self.seen += 1;
        if !is_kept {
            return;
        }
        if self.kept.len() == MOST {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
            // The one that comes now is one of those that stay.
        }
        self.kept.push(packet);
    }

    pub fn finish(self) -> Vec<First> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_200_ms_count() {
        let mut first = FirstPackets::new();
        for at_ns in [7, 200_000_006, 200_000_007, 900_000_000] {
            first.add(at_ns, 3);
        }
        let times: Vec<_> = first.finish().iter().map(|it| it.at_ns).collect();
        assert_eq!(times, [0, 199_999_999]);
    }

    #[test]
    fn too_many_are_thinned_evenly() {
        for count in [4_096, 4_097, 8_193, 200_000] {
            let mut first = FirstPackets::new();
            (0..count).for_each(|number| first.add(number * 1_000, number as i64));
            let kept = first.finish();
            let every = kept[1].at_ns / 1_000;
            assert!(every.is_power_of_two() && kept.len() <= MOST, "{count}");
            assert!(kept.len() as u64 == count.div_ceil(every), "{count}");
            let expected = |(index, it): (usize, &First)| it.at_ns == index as u64 * every * 1_000;
            assert!(kept.iter().enumerate().all(expected), "{count}");
        }
    }
}
