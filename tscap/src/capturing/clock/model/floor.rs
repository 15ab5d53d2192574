//! The least width of a reading, and how far above it one is: its point error.

use super::scale::{HISTORY_NS, Scale};
use crate::capturing::clock::{NsPerCycle, TscCycles};

/// A minimum over the latest half to whole of a window, in bounded memory.
#[derive(Clone, Copy, Debug)]
struct SlidingMinimum {
    length_ns: u64,
    turned: TscCycles,
    older: u64,
    newer: u64,
}

impl SlidingMinimum {
    fn new(length_ns: u64, at: TscCycles, width: u64) -> Self {
        Self {
            length_ns,
            turned: at,
            older: width,
            newer: width,
        }
    }

    fn take(&mut self, at: TscCycles, width: u64, rate: NsPerCycle) {
        if rate.duration_ns(at.0.saturating_sub(self.turned.0)) > self.length_ns / 2 {
            self.turned = at;
            self.older = self.newer;
            self.newer = width;
        }
        self.newer = self.newer.min(width);
    }

    fn least(&self) -> u64 {
        self.older.min(self.newer)
    }
}

/// How the least width has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::capturing::clock) enum Change {
    None,
    /// Readings before were this much worse than they were taken for, ns.
    Fell(u64),
    /// A level shift: for a while every reading has been wider.
    Rose,
}

/// The least width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    history: SlidingMinimum,
    recent: SlidingMinimum,
    shift_ns: u64,
}

impl Floor {
    pub fn new(scale: Scale, at: TscCycles, width: u64) -> Self {
        Self {
            history: SlidingMinimum::new(HISTORY_NS, at, width),
            recent: SlidingMinimum::new(scale.lifetime_ns(), at, width),
            shift_ns: scale.quality_ns(),
        }
    }

    /// Takes in the width of a reading, ns. It falls at once and rises only when
    /// all readings of half a lifetime or more have been wider by E (RADclock's
    /// upward level shift takes 4E over 2500 s).
    pub fn take(&mut self, at: TscCycles, width: u64, rate: NsPerCycle) -> Change {
        let before = self.history.least();
        self.history.take(at, width, rate);
        self.recent.take(at, width, rate);
        let now = self.history.least();
        if self.recent.least() > now + self.shift_ns {
            self.history = self.recent;
            self.history.length_ns = HISTORY_NS;
            return Change::Rose;
        }
        if now < before {
            Change::Fell(before - now)
        } else {
            Change::None
        }
    }

    /// The point error of a reading of this width, ns.
    pub fn point_error(&self, width: u64) -> u64 {
        width.saturating_sub(self.history.least())
    }

    /// The least width, ns.
    pub fn least(&self) -> u64 {
        self.history.least()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Readings of the host, one each tenth of a second: its widths are of one level within
    /// 40 ns, over half of 2 s.
    #[test]
    fn it_falls_at_once_and_rises_when_all_of_a_while_are_wider() {
        let rate = NsPerCycle::of(S, S).unwrap();
        let mut floor = Floor::new(Scale::HOST, TscCycles(0), 50);
        let mut turn = 0;
        let mut take = |floor: &mut Floor, width| {
            turn += 1;
            floor.take(TscCycles(turn * S / 10), width, rate)
        };
        assert_eq!(take(&mut floor, 50), Change::None);
        assert_eq!(take(&mut floor, 45), Change::Fell(5));
        assert_eq!(
            [60, 45, 40].map(|width| floor.point_error(width)),
            [15, 0, 0]
        );
        // No more than the usual.
        assert!((0..60).all(|_| take(&mut floor, 85) == Change::None));
        assert_eq!(floor.least(), 45);
        let rose = (0..60).filter(|_| take(&mut floor, 86) == Change::Rose);
        assert_eq!(rose.count(), 1);
        assert_eq!(floor.least(), 86);
        // It stays where it is for a week, not for two seconds.
        assert!((0..60).all(|_| take(&mut floor, 100) == Change::None));
        assert_eq!(floor.least(), 86);
        assert_eq!(take(&mut floor, 80), Change::Fell(6));
    }
}
