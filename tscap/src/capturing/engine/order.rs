//! How well the stamps were in order, within each ring and between them.

use serde::{Deserialize, Serialize};

use crate::capturing::clock::RawStamp;

/// Stamps out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampOrder {
    /// Stamps that were less than the one before on the same CPU.
    pub stamp_decreases: u64,
    /// The largest such decrease, ns.
    pub largest_decrease_ns: u64,
    /// Frames that stand in the file behind a younger one of another CPU: their
    /// blocks were published later after the stamp than order is kept for.
    pub late: u64,
    /// How much younger that one was at most, ns.
    pub largest_lateness_ns: u64,
}

impl StampOrder {
    /// Takes in what was found later.
    pub(super) fn add(&mut self, later: Self) {
        self.stamp_decreases += later.stamp_decreases;
        self.largest_decrease_ns = self.largest_decrease_ns.max(later.largest_decrease_ns);
        self.late += later.late;
        self.largest_lateness_ns = self.largest_lateness_ns.max(later.largest_lateness_ns);
    }

    /// Counts a stamp that is less than `before`, the one before it in the ring.
    pub(super) fn count_decrease(&mut self, before: RawStamp, stamp: RawStamp) {
        self.stamp_decreases += 1;
        self.largest_decrease_ns = self.largest_decrease_ns.max(before.0 - stamp.0);
    }

    /// Counts a frame written behind one stamped `younger`.
    pub(super) fn count_late(&mut self, younger: RawStamp, stamp: RawStamp) {
        self.late += 1;
        self.largest_lateness_ns = self.largest_lateness_ns.max(younger.0 - stamp.0);
    }
}

/// The greatest stamps written so far: of one ring, and of all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Youngest {
    ring: usize,
    of_it: RawStamp,
    of_others: RawStamp,
}

impl Youngest {
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
            let mut youngest = Youngest::new();
            for (count, (ring, stamp)) in written.iter().enumerate() {
                youngest.wrote(*ring, RawStamp(*stamp));
                for ring in 0..5 {
                    let others = written[..=count].iter().filter(|(other, _)| *other != ring);
                    let greatest = others.map(|(_, stamp)| *stamp).max().unwrap_or(0);
                    prop_assert_eq!(youngest.elsewhere(ring), RawStamp(greatest));
                }
            }
        }
    }
}
