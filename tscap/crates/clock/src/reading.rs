//! One look at the reference between two readings of the counter.

use super::ns_per_cycle::FixedPointNs;
use super::{NsPerCycle, RealNs, TscCycles};

/// The reference, read between two readings of the counter. Its width in time plays
/// the part that the round-trip time has between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The counter before and after.
    pub tsc: [TscCycles; 2],
    /// The reference in between, on its own time scale: the first and the last
    /// reading of it.
    pub real: [RealNs; 2],
}

impl Bracket {
    /// The middles of both. `None` if either went backwards inside.
    pub(super) fn middle(&self) -> Option<(u64, u64)> {
        let middle = |from: u64, until: u64| Some(from + until.checked_sub(from)? / 2);
        let Self { tsc, real } = self;
        Some((middle(tsc[0].0, tsc[1].0)?, middle(real[0].0, real[1].0)?))
    }

    /// Cycles that the counter went on meanwhile.
    pub(super) fn cycles(&self) -> u64 {
        self.tsc[1].0.saturating_sub(self.tsc[0].0)
    }
}

/// What a bracket says: at counter value `at` the reference read between `low` and
/// `high`, strictly, whatever the parts of its width before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The counter, cycles.
    pub at: TscCycles,
    /// The reference read more than this, ns.
    pub low: u64,
    /// The reference read less than this, ns.
    pub high: u64,
}

impl Reading {
    /// `None` if counter or reference went backwards inside.
    pub fn new(bracket: &Bracket, rate: NsPerCycle) -> Option<Self> {
        let Bracket { tsc, real } = bracket;
        let span = tsc[1].0.checked_sub(tsc[0].0)?;
        let at = tsc[0].0 + span / 2;
        // Outwards; and readings are truncated to nanoseconds: the clock was up to 1 ns
        // further, and the counter up to a count of its own.
        let after = rate.span(tsc[1].0 - at).ns_up() + rate.count_ns();
        let low = real[1].0.checked_sub(after)?;
        let high = real[0]
            .0
            .checked_add(rate.span(at - tsc[0].0).ns_up())?
            .checked_add(1)?;
        (low <= high).then_some(Self {
            at: TscCycles(at),
            low,
            high,
        })
    }

    /// Two readings whose widths are cycles by the rate from the middle of the one to that of the
    /// other, which is all that is known of the rate. It is off by a = w / 2s of itself, where w
    /// is the sum of the true widths and s the time between the middles. They are true if they are
    /// wider by a, so that a = w' / 2s · (1 + a) for the widths w' by that rate: a = w' / (2s − w').
    /// `None` if that allows any rate.
    pub(super) fn of_first_rate(readings: [Self; 2]) -> Option<[Self; 2]> {
        let [far, near] = &readings;
        let widths = far.width() + near.width();
        let spans = 2 * near.middle().checked_sub(far.middle())?;
        let least = spans.checked_sub(widths).filter(|least| *least > 0)?;
        Some(readings.map(|it| {
            let more = u128::from(it.width()) * u128::from(widths) / u128::from(2 * least);
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            Self {
                low: it.low.saturating_sub(more),
                high: it.high.saturating_add(more),
                ..it
            }
        }))
    }

    /// The best guess: the middle.
    pub fn middle(&self) -> u64 {
        self.low + (self.high - self.low) / 2
    }

    /// Twice the greatest error of the middle, ns.
    pub fn width(&self) -> u64 {
        self.high - self.low
    }

    /// From a time to the farther end, ns.
    pub(crate) fn farther_ns(&self, time: u64) -> u64 {
        let above = self.high.saturating_sub(time);
        above.max(time.saturating_sub(self.low))
    }

    pub(crate) fn interval(&self) -> Interval {
        Interval {
            low: FixedPointNs::from_ns(i128::from(self.low)),
            high: FixedPointNs::from_ns(i128::from(self.high)),
        }
    }
}

/// Where the reference can be at some counter value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub low: FixedPointNs,
    pub high: FixedPointNs,
}

impl Interval {
    /// The same `cycles` later, when the counter's period may be off by `ppb`.
    pub fn carried(self, cycles: u64, rate: NsPerCycle, ppb: u64) -> Self {
        let span = rate.span(cycles);
        let slack = span.ppb(ppb);
        Self {
            low: self.low.plus(span).minus(slack),
            high: self.high.plus(span).plus(slack),
        }
    }

    pub fn meet(self, other: Self) -> Option<Self> {
        let low = self.low.max(other.low);
        let high = self.high.min(other.high);
        (low <= high).then_some(Self { low, high })
    }

    /// How far they are from each other: negative if `other` is earlier, zero if
    /// they meet.
    pub fn gap_to(self, other: Self) -> FixedPointNs {
        let later = other.low.minus(self.high).max(FixedPointNs(0));
        let earlier = self.low.minus(other.high).max(FixedPointNs(0));
        later.minus(earlier)
    }

    /// The nearest time that it allows.
    pub fn nearest(self, time: FixedPointNs) -> FixedPointNs {
        time.clamp(self.low, self.high)
    }

    /// From `time` to the farther end, ns, rounded up.
    pub fn farther_ns(self, time: FixedPointNs) -> u64 {
        self.high.minus(time).max(time.minus(self.low)).ns_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A third of a nanosecond is a nanosecond more on either side.
    #[test]
    fn what_it_allows_is_rounded_outwards() {
        let rate = NsPerCycle::of(1, 3).unwrap();
        let bracket = Bracket {
            tsc: [TscCycles(0), TscCycles(8)],
            real: [RealNs(100); 2],
        };
        let reading = Reading::new(&bracket, rate).unwrap();
        assert_eq!((reading.low, reading.high), (98, 103));
        assert_eq!(bracket.cycles(), 8);
    }
}
