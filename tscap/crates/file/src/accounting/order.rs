//! How well the stamps were in order, within each ring and between them.

use serde::{Deserialize, Serialize};

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
    pub fn add(&mut self, later: Self) {
        self.stamp_decreases += later.stamp_decreases;
        self.largest_decrease_ns = self.largest_decrease_ns.max(later.largest_decrease_ns);
        self.late += later.late;
        self.largest_lateness_ns = self.largest_lateness_ns.max(later.largest_lateness_ns);
    }

    /// Counts a stamp that is less than `before`, the one before it in the ring, by so
    /// many units of the stamp.
    pub fn count_decrease(&mut self, by: u64) {
        self.stamp_decreases += 1;
        self.largest_decrease_ns = self.largest_decrease_ns.max(by);
    }

    /// Counts a frame written behind one that is younger by so many units of the stamp.
    pub fn count_late(&mut self, by: u64) {
        self.late += 1;
        self.largest_lateness_ns = self.largest_lateness_ns.max(by);
    }
}
