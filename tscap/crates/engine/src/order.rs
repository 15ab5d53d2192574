//! The order of stamps between the rings.

use tscap_clock::RawStamp;

/// The greatest stamps written so far: of one ring, and of all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatestStamp {
    ring: usize,
    of_it: RawStamp,
    of_others: RawStamp,
}

impl LatestStamp {
    /// Nothing has been written.
    pub(super) fn new() -> Self {
        Self {
            ring: 0,
            of_it: RawStamp(0),
            of_others: RawStamp(0),
        }
    }

    /// The greatest stamp written from other rings than `ring`.
    #[inline]
    pub(super) fn elsewhere(&self, ring: usize) -> RawStamp {
        if ring == self.ring {
            self.of_others
        } else {
            self.of_it
        }
    }

    /// Takes in the greatest stamp of some blocks written from `ring`.
    #[inline]
    pub(super) fn wrote(&mut self, ring: usize, stamp: RawStamp) {
        if ring == self.ring {
            self.of_it = self.of_it.max(stamp);
        } else if stamp > self.of_it {
            *self = Self {
                ring,
                of_it: stamp,
                of_others: self.of_it,
            };
        } else {
            self.of_others = self.of_others.max(stamp);
        }
    }

    /// Forgets what is later than `now`: the clock was set back meanwhile, and
    /// the frames from here on are not late.
    pub(super) fn forget_after(&mut self, now: RawStamp) {
        self.of_it = self.of_it.min(now);
        self.of_others = self.of_others.min(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_youngest_of_others_is_their_greatest_stamp(
            written in prop::collection::vec((0usize..5, 0u64..100), 0..50),
        ) {
            let mut youngest = LatestStamp::new();
            for (count, (ring, stamp)) in written.iter().enumerate() {
                youngest.wrote(*ring, RawStamp(*stamp));
                for ring in 0..5 {
                    let others = written[..=count].iter().filter(|(other, _)| *other != ring);
                    let greatest = others.map(|(_, stamp)| *stamp).max().unwrap_or(0);
                    prop_assert_eq!(youngest.elsewhere(ring), RawStamp(greatest));
                }
            }
            let before = [0, 1, 2, 3, 4].map(|ring| youngest.elsewhere(ring));
            let now = RawStamp(50);
            youngest.forget_after(now);
            let after = [0, 1, 2, 3, 4].map(|ring| youngest.elsewhere(ring));
            prop_assert_eq!(after, before.map(|stamp| stamp.min(now)));
        }
    }
}
