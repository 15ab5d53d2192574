//! A stretch of readings that a straight line goes through, and all such lines.

use std::ops::Range;

use super::{BEYOND_NS, LONGEST_HOLE_NS};
use crate::reading::{Interval, Reading};
use crate::{NsPerCycle, RawStamp, RealNs};

/// Steepest line: what the host's clock may be slewed by (see [`crate::Scale`]),
/// ns in a second.
const STEEPEST: f64 = 2e8;

/// Readings through which a straight line goes. Lines are told by how far they are
/// from that of p̂ through the first reading: ns there, and ns a second. Floats hold
/// only these differences.
#[derive(Clone, Debug)]
pub(super) struct LineFit {
    pub from: u64,
    /// Latest reading that is on the line for certain.
    pub until: u64,
    /// Latest reading, which the clock may have left the line before.
    last: u64,
    /// How many there are.
    readings: u32,
    pub start: Start,
    /// Whether the rate has changed after its latest reading.
    pub is_before_bend: bool,
    /// Between these its stamps are its own.
    own: [u64; 2],
    origin: Interval,
    rate: NsPerCycle,
    /// Corners of the convex set of all such lines.
    lines: Vec<Line>,
}

/// Why a piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With the first reading of its segment, or after a hole.
    First,
    /// The clock's rate has changed before its first reading.
    Bend,
    /// The lines of the piece before left too little room.
    Narrow,
    /// No line of the piece before goes through its first reading, though live no bend
    /// was seen.
    Contradiction,
    /// Bends were left out of the history since the piece before.
    LeftOut,
}

/// How the lines of two pieces cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crossing {
    /// The clock became faster there.
    Faster,
    Slower,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    ns: f64,
    ns_per_s: f64,
}

impl Line {
    fn at(&self, seconds: f64) -> f64 {
        self.ns + self.ns_per_s * seconds
    }
}

impl LineFit {
    pub fn new(first: &Reading, rate: NsPerCycle, start: Start) -> Self {
        let width = first.width() as f64;
        let line = |ns, ns_per_s| Line { ns, ns_per_s };
        Self {
            from: first.at.0,
            until: first.at.0,
            last: first.at.0,
            readings: 1,
            start,
            is_before_bend: false,
            own: [0, u64::MAX],
            origin: first.interval(),
            rate,
            lines: vec![
                line(0.0, -STEEPEST),
                line(0.0, STEEPEST),
                line(width, STEEPEST),
                line(width, -STEEPEST),
            ],
        }
    }

    fn seconds(&self, at: u64) -> f64 {
        let since = at.wrapping_sub(self.from).cast_signed();
        let span = self.rate.span(since.unsigned_abs()).as_f64() / 1e9;
        if since < 0 { -span } else { span }
    }

    /// Where the line of p̂ through the start of the first reading is, ns.
    fn base(&self, at: u64) -> i128 {
        let low = self.origin.low;
        if at >= self.from {
            low.plus(self.rate.span(at - self.from)).ns()
        } else {
            low.minus(self.rate.span(self.from - at)).ns()
        }
    }

    /// Takes in the next reading, if the lines through it too leave this much room.
    ///
    /// # Errors
    /// Why a new piece begins with it instead.
    pub fn take(&mut self, reading: &Reading, least_room_ns: u64) -> Result<(), Start> {
        let seconds = self.seconds(reading.at.0);
        let base = self.base(reading.at.0);
        let low = (i128::from(reading.low) - base) as f64;
        let high = (i128::from(reading.high) - base) as f64;
        let below = clip(&self.lines, |line| high - line.at(seconds));
        let both = clip(&below, |line| line.at(seconds) - low);
        let is_narrow = |part| {
            let [low, high] = extent(&both, seconds * part);
            high - low < least_room_ns as f64
        };
        if both.is_empty() {
            return Err(Start::Contradiction);
        }
        if [0.0, 0.5, 1.0].into_iter().any(is_narrow) {
            return Err(Start::Narrow);
        }
        self.lines = both;
        self.last = reading.at.0;
        self.readings += 1;
        Ok(())
    }

    /// Whether the clock was on one of its lines. Any two readings after a bend are on a
    /// line, wherever the rate changed between them.
    pub fn is_proven(&self) -> bool {
        let is_after_bend = matches!(self.start, Start::Bend | Start::LeftOut);
        self.readings > 2 || (!is_after_bend && (self.readings > 1 || !self.is_before_bend))
    }

    /// Whether so much time is between its latest reading and the next that the clock is
    /// not known there.
    pub fn is_hole_until(&self, next: u64) -> bool {
        self.rate.duration_ns(next - self.last) > LONGEST_HOLE_NS
    }

    /// What its lines allow for a stamp that is of its own for certain.
    pub fn at(&self, stamp: RawStamp) -> Option<[RealNs; 2]> {
        let is_own = (self.own[0]..=self.own[1]).contains(&stamp.0);
        is_own.then(|| self.line_at(stamp)).flatten()
    }

    fn line_at(&self, stamp: RawStamp) -> Option<[RealNs; 2]> {
        let seconds = self.seconds(stamp.0);
        let [low, high] = extent(&self.lines, seconds);
        let base = self.base(stamp.0);
        let real = |ns: f64| u64::try_from(base + ns as i128).ok().map(RealNs);
        Some([real(low.floor())?, real(high.ceil())?])
    }

    /// Between this piece and the next one, where the clock went from the one line to
    /// the other. If its rate changed once, it did so where they cross: it went by the
    /// later of them if it became faster, by the earlier one if slower. `None` where it
    /// may have changed more than once.
    pub fn between(&self, next: &Self, stamp: RawStamp) -> Option<[RealNs; 2]> {
        let is_one_bend = matches!(next.start, Start::Bend | Start::Narrow);
        if !is_one_bend || !self.is_proven() || !next.is_proven() {
            return None;
        }
        let [[a, b], [c, d]] = [self.line_at(stamp)?, next.line_at(stamp)?];
        Some(match self.crossing(next)? {
            Crossing::Faster => [a.max(c), b.max(d)],
            Crossing::Slower => [a.min(c), b.min(d)],
            Crossing::Unknown => [a.min(c), b.max(d)],
        })
    }

    /// Where the lines of this piece and the next one do not cross for certain, the counter
    /// may have gone back between them by as much as they are apart: stamps so near on
    /// either side are not told.
    pub fn part_from(&mut self, next: &mut Self) {
        let is_crossing = |crossing| crossing != Crossing::Unknown;
        if self.crossing(next).is_some_and(is_crossing) {
            return;
        }
        let at = RawStamp(next.from);
        let Some(([a, b], [c, d])) = self.line_at(at).zip(next.line_at(at)) else {
            return;
        };
        let apart_ns = b.0.abs_diff(c.0).max(d.0.abs_diff(a.0));
        let apart_ns = i64::try_from(apart_ns).unwrap_or(i64::MAX);
        let apart = self.rate.cycles_in(apart_ns).unsigned_abs();
        self.own[1] = self.until.saturating_sub(apart);
        next.own[0] = next.from.saturating_add(apart);
    }

    /// How the lines of this piece and the next one cross between the two.
    fn crossing(&self, next: &Self) -> Option<Crossing> {
        let cross = |first: &Self, second: &Self, at: u64| {
            let [low, _] = first.line_at(RawStamp(at))?;
            let [_, high] = second.line_at(RawStamp(at))?;
            Some(low <= high)
        };
        let [slow, fast] = self.slopes();
        let [next_slow, next_fast] = next.slopes();
        Some(
            if next_slow > fast && cross(next, self, self.until)? && cross(self, next, next.from)? {
                Crossing::Faster
            } else if next_fast < slow
                && cross(self, next, self.until)?
                && cross(next, self, next.from)?
            {
                Crossing::Slower
            } else {
                Crossing::Unknown
            },
        )
    }

    fn slopes(&self) -> [f64; 2] {
        let slopes = self.lines.iter().map(|line| line.ns_per_s);
        [
            slopes.clone().fold(f64::INFINITY, f64::min),
            slopes.fold(f64::NEG_INFINITY, f64::max),
        ]
    }

    /// The stamps that [`Self::at_most_beyond`] and [`Self::at`] are for lie in between.
    pub fn reach(&self) -> Range<u64> {
        let beyond = self.rate.cycles_in(BEYOND_NS.cast_signed()).unsigned_abs() + 1;
        self.from.saturating_sub(beyond)..self.until.saturating_add(beyond)
    }

    pub fn at_most_beyond(&self, cycles: u64, stamp: RawStamp) -> Option<[RealNs; 2]> {
        let is_near = self.rate.duration_ns(cycles) <= BEYOND_NS;
        (is_near && self.is_proven())
            .then(|| self.at(stamp))
            .flatten()
    }
}

/// The least and the greatest value of lines.
fn extent(lines: &[Line], seconds: f64) -> [f64; 2] {
    let values = lines.iter().map(|line| line.at(seconds));
    [
        values.clone().fold(f64::INFINITY, f64::min),
        values.fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// The part of a convex polygon where `inside` is not negative (Sutherland, Hodgman:
/// Reentrant Polygon Clipping, 1974).
fn clip(corners: &[Line], inside: impl Fn(&Line) -> f64) -> Vec<Line> {
    let mut kept = Vec::with_capacity(corners.len() + 1);
    for (index, corner) in corners.iter().enumerate() {
        let next = &corners[(index + 1) % corners.len()];
        let (here, there) = (inside(corner), inside(next));
        if here >= 0.0 {
            kept.push(*corner);
        }
        if (here > 0.0 && there < 0.0) || (here < 0.0 && there > 0.0) {
            let share = here / (here - there);
            kept.push(Line {
                ns: corner.ns + share * (next.ns - corner.ns),
                ns_per_s: corner.ns_per_s + share * (next.ns_per_s - corner.ns_per_s),
            });
        }
    }
    kept
}

#[cfg(test)]
mod tests;
