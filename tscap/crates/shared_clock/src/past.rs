//! The latest past of the clock, as straight pieces with their bounds.
//!
//! The clock that stamps are converted by is a line from reading to reading. A piece is one
//! line in the place of many of these: it ends where it would leave them by more than
//! [`FARTHEST_NS`], after [`LONGEST_NS`], and where a stamp's side of an event is not known.

use std::collections::VecDeque;

use tscap_clock::NsPerCycle;
use tscap_clock_reader::layout::{PIECES, Piece, UNKNOWN};

use crate::Utc;

/// A piece leaves the lines from reading to reading by no more than that, ns: as much as these
/// are good to.
const FARTHEST_NS: u64 = 100;
/// The longest piece, ns: 64 of them are a minute.
const LONGEST_NS: u64 = 1_000_000_000;

/// The clock at a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Knot {
    /// The counter.
    pub raw: u64,
    /// CLOCK_REALTIME by the line from the reading before to this one, ns.
    pub real_ns: u64,
    /// Greatest error of that line, ns.
    pub bound_ns: u64,
    /// What was known of UTC.
    pub utc: Utc,
}

/// The pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    closed: VecDeque<Piece>,
    /// The readings of the latest piece.
    open: Vec<Knot>,
}

impl Past {
    /// Takes in a reading to which the clock ran as before.
    pub fn extend(&mut self, knot: Knot, rate: NsPerCycle) {
        let Some(last) = self.open.last().copied() else {
            self.open.push(knot);
            return;
        };
        let first = self.open[0];
        let is_known = |knot: &Knot| knot.utc.bound_ns.is_some();
        // Before and after UTC became known or unknown are pieces of their own.
        let is_over = last.real_ns.saturating_sub(first.real_ns) >= LONGEST_NS
            || is_known(&first) != is_known(&last)
            || is_known(&last) != is_known(&knot);
        if is_over && self.open.len() > 1 {
            self.close(rate);
            self.open.push(last);
        }
        self.open.push(knot);
        if self.open.len() > 2 && farthest_ns(&self.open, rate) > FARTHEST_NS {
            self.open.pop();
            self.close(rate);
            self.open.extend([last, knot]);
        }
    }

    /// Ends the latest piece: how the clock goes on is not known.
    pub fn interrupt(&mut self, rate: NsPerCycle) {
        self.close(rate);
    }

    /// Forgets all: the counter jumped.
    pub fn forget(&mut self) {
        self.closed.clear();
        self.open.clear();
    }

    /// The counter at the latest reading of the latest piece.
    pub fn first_of_open(&self) -> Option<u64> {
        self.open.first().map(|knot| knot.raw)
    }

    /// Takes out the counter values from the one to the other. The latest piece must be ended
    /// before if it has some of them.
    pub fn cut(&mut self, first: u64, last: u64) {
        self.closed.retain_mut(|piece| {
            if piece.until < first || piece.from > last {
                return true;
            }
            if piece.from < first {
                piece.until = first - 1;
                return true;
            }
            let is_left = piece.until > last;
            if is_left {
                let cycles = last + 1 - piece.from;
                piece.real_ns += NsPerCycle(piece.rate).duration_ns(cycles);
                // The new beginning is rounded as well.
                piece.host_bound_ns += 1;
                piece.from = last + 1;
            }
            is_left
        });
    }

    /// All, oldest first.
    pub fn pieces(&self, rate: NsPerCycle) -> Vec<Piece> {
        let closed = self.closed.iter().copied();
        closed.chain(piece_of(&self.open, rate)).collect()
    }

    fn close(&mut self, rate: NsPerCycle) {
        self.closed.extend(piece_of(&self.open, rate));
        self.open.clear();
        let forgotten = self.closed.len().saturating_sub(PIECES - 1);
        self.closed.drain(..forgotten);
    }
}

/// The rate of the line through the first and the last of them.
fn rate_of(knots: &[Knot], rate: NsPerCycle) -> NsPerCycle {
    let (Some(first), Some(last)) = (knots.first(), knots.last()) else {
        return rate;
    };
    let ns = last.real_ns.saturating_sub(first.real_ns);
    NsPerCycle::of(ns, last.raw - first.raw).unwrap_or(rate)
}

/// How far that line is from the readings at most, ns.
fn farthest_ns(knots: &[Knot], rate: NsPerCycle) -> u64 {
    let line = rate_of(knots, rate);
    let off = knots.iter().map(|knot| {
        let ns = line.duration_ns(knot.raw - knots[0].raw);
        (knots[0].real_ns + ns).abs_diff(knot.real_ns)
    });
    off.max().unwrap_or(0)
}

/// The line in the place of those between the readings; `None` if there are none.
fn piece_of(knots: &[Knot], rate: NsPerCycle) -> Option<Piece> {
    let (first, last) = (knots.first()?, knots.last()?);
    // That of the first one is of the line before it; a piece of one reading has but that.
    let lines = knots.get(1..).filter(|it| !it.is_empty()).unwrap_or(knots);
    let bound_ns = lines.iter().map(|knot| knot.bound_ns).max()?;
    let (utc_offset_ns, utc_bound_ns) = utc_of(knots);
    Some(Piece {
        from: first.raw,
        until: last.raw,
        real_ns: first.real_ns,
        rate: rate_of(knots, rate).0,
        // Both lines are rounded.
        host_bound_ns: bound_ns + farthest_ns(knots, rate) + 2,
        utc_offset_ns,
        utc_bound_ns,
    })
}

/// The offset and the bound that have those of all.
fn utc_of(knots: &[Knot]) -> (i64, u64) {
    let ends = knots.iter().map(|knot| {
        let bound = knot.utc.bound_ns?;
        let offset = knot.utc.offset_ns;
        let ends = [
            offset.saturating_sub_unsigned(bound),
            offset.saturating_add_unsigned(bound),
        ];
        Some(ends)
    });
    let ends: Option<Vec<_>> = ends.collect();
    let Some(ends) = ends else {
        return (0, UNKNOWN);
    };
    let low = ends.iter().map(|[low, _]| *low).min().unwrap_or(0);
    let high = ends.iter().map(|[_, high]| *high).max().unwrap_or(0);
    let width = high.abs_diff(low);
    (low.saturating_add_unsigned(width / 2), width.div_ceil(2))
}

#[cfg(test)]
mod tests;
