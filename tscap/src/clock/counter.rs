//! A raw counter against CLOCK_REALTIME: the first, simple estimator.
//!
//! Each cross-timestamp says that at counter value `N` the clock read between
//! `low` and `high`, strictly. The clock `C(N) = p̂·N + K` is carried from one
//! cross-timestamp to the next with the rate `p̂`; where it still lies inside the
//! bounds it is only drawn a little to their middle, else it is moved to the
//! nearer bound. Between two cross-timestamps it is the straight line that joins
//! them, so that it never jumps (DESIGN section 4: K keeps C continuous).
//!
//! `p̂` comes from a far and a near cross-timestamp, never from these
//! corrections (Ridoux, Veitch, Broomhead: The Case for Feed-Forward Clock
//! Synchronization, section III).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{RealNs, TscCycles};

/// Nanoseconds per cycle, in units of 2^-58: exact to 4·10^-18 of a nanosecond,
/// for counters from 63 MHz on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NsPerCycle(pub u64);

const SHIFT: u32 = 58;

impl NsPerCycle {
    /// `ns` in `cycles`; `None` if that is no rate that a counter can have.
    fn of(ns: u64, cycles: u64) -> Option<Self> {
        let rate = (u128::from(ns) << SHIFT).checked_div(u128::from(cycles))?;
        u64::try_from(rate).ok().filter(|rate| *rate > 0).map(Self)
    }

    /// Cycles in a span of `ns`, rounded towards zero.
    pub fn cycles_in(self, ns: i64) -> i64 {
        let cycles = (i128::from(ns) << SHIFT) / i128::from(self.0);
        i64::try_from(cycles).unwrap_or(i64::MAX)
    }

    /// Duration of `cycles`, ns, rounded to the nearest: the difference clock
    /// `p̂·ΔN`.
    #[inline]
    pub fn duration_ns(self, cycles: u64) -> u64 {
        let product = u128::from(cycles) * u128::from(self.0) + (1 << (SHIFT - 1));
        u64::try_from(product >> SHIFT).unwrap_or(u64::MAX)
    }
}

/// What the file says of a raw counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterReport {
    /// p̂, in units of 2^-58 ns a cycle: intervals between raw stamps are this
    /// times their difference.
    pub ns_per_cycle_2_58: NsPerCycle,
    /// Greatest relative error of p̂ over its baseline, parts per billion.
    pub rate_bound_ppb: u64,
}

/// How closely the offset between a CPU's own counter (its perf event) and the
/// TSC is bracketed, ns. A chain of two legs: CLOCK_MONOTONIC is read on either
/// side of the event, and the TSC on either side of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetBracket {
    /// The first leg, which each CPU has for itself, of the narrowest run.
    pub cpu_ns: u64,
    /// The second, between two clocks that are the same on every CPU.
    pub common_ns: u64,
    /// Both together, all runs intersected. The offset is off by half of this at most.
    pub whole_ns: u64,
}

impl OffsetBracket {
    /// The greater of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.max(other.cpu_ns),
            common_ns: self.common_ns.max(other.common_ns),
            whole_ns: self.whole_ns.max(other.whole_ns),
        }
    }
}

/// A straight piece of the clock, from a cross-timestamp on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    from: TscCycles,
    real: RealNs,
    rate: NsPerCycle,
}

impl Piece {
    #[inline]
    fn real_at(&self, at: TscCycles) -> RealNs {
        if at >= self.from {
            RealNs(
                self.real
                    .0
                    .wrapping_add(self.rate.duration_ns(at.0 - self.from.0)),
            )
        } else {
            RealNs(
                self.real
                    .0
                    .wrapping_sub(self.rate.duration_ns(self.from.0 - at.0)),
            )
        }
    }
}

/// Pieces that a conversion keeps: stamps are converted within a few drains of
/// being taken, and each drain adds one.
const PIECES: usize = 16;

/// What a cross-timestamp says of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    at: TscCycles,
    low: u64,
    high: u64,
}

impl Reading {
    fn middle(&self) -> u64 {
        self.low + (self.high - self.low) / 2
    }

    fn width(&self) -> u64 {
        self.high - self.low
    }
}

/// The estimator.
#[derive(Clone, Debug)]
pub struct CounterClock {
    rate: NsPerCycle,
    /// Greatest relative error of `rate`, parts per billion.
    rate_bound_ppb: u64,
    far: Reading,
    /// Takes the place of `far` when that is too old.
    next_far: Reading,
    tightest_ns: u64,
    pieces: VecDeque<Piece>,
    /// Distance of the clock from the farther bound at the latest piece, ns.
    last_bound_ns: u64,
    /// The greatest such distance.
    bound_ns: u64,
}

/// A far cross-timestamp this much older is exchanged for a nearer one: over
/// longer spans the host clock's own rate wanders (RADclock's time scale of
/// stability is about 1000 s).
const LONGEST_BASELINE_NS: u64 = 1_000_000_000_000;
/// A new `p̂` needs at least this baseline: with brackets of 50 ns it is then
/// good to 5 ppm, and to 0.05 ppm after a second.
const SHORTEST_BASELINE_NS: u64 = 10_000_000;
/// The first `p̂` is good to one part in this: 10 ppm.
const FIRST_RATE_ERROR: u64 = 100_000;
/// Cross-timestamps closer together than this make no piece of their own, so
/// that the pieces kept reach back over many drains.
const SHORTEST_GAP_NS: u64 = 20_000;
/// After a step the old `p̂` is kept until the new one would be good to 0.1 ppm.
const BASELINE_AFTER_STEP_NS: u64 = 1_000_000_000;
/// A cross-timestamp this many times wider than the narrowest was interrupted.
const WIDE: u64 = 2;
/// A wide cross-timestamp is passed over unless the one before is this old.
const LONGEST_GAP_NS: u64 = 100_000_000;
/// Inside its bounds the clock is drawn this fraction of the way to the middle.
const PULL: i64 = 16;

impl CounterClock {
    /// Begins with two cross-timestamps of one segment; `None` if they are torn,
    /// less than 10 ms apart, or too wide for a rate within 10 ppm.
    pub(super) fn new(
        first: ([TscCycles; 2], [RealNs; 2]),
        second: ([TscCycles; 2], [RealNs; 2]),
    ) -> Option<Self> {
        let span = second.1[0].0.checked_sub(first.1[0].0)?;
        let cycles = second.0[0].0.checked_sub(first.0[0].0)?;
        if span < SHORTEST_BASELINE_NS {
            return None;
        }
        let rate = NsPerCycle::of(span, cycles)?;
        let far = reading(first, rate)?;
        let near = reading(second, rate)?;
        if (far.width() + near.width()) / 2 > span / FIRST_RATE_ERROR {
            return None;
        }
        let mut clock = Self {
            rate,
            rate_bound_ppb: u64::MAX,
            far,
            next_far: far,
            tightest_ns: far.width().min(near.width()),
            pieces: VecDeque::from([Piece {
                from: far.at,
                real: RealNs(far.middle()),
                rate,
            }]),
            last_bound_ns: far.width().div_ceil(2),
            bound_ns: far.width().div_ceil(2),
        };
        clock.update_rate(&near, 0);
        clock.observe(second.0, second.1, false);
        Some(clock)
    }

    /// Takes in one more cross-timestamp; `stepped` if it is the first after the
    /// system clock was set. Says whether it was narrow enough to be used.
    pub(super) fn observe(
        &mut self,
        tsc: [TscCycles; 2],
        real: [RealNs; 2],
        stepped: bool,
    ) -> bool {
        let Some(reading) = reading((tsc, real), self.rate) else {
            return false;
        };
        let Some(last) = self.pieces.back_mut() else {
            return false;
        };
        let gap = self
            .rate
            .duration_ns(reading.at.0.saturating_sub(last.from.0));
        let is_wide = reading.width() > WIDE * self.tightest_ns + 20;
        if !stepped && (reading.at <= last.from || (is_wide && gap < LONGEST_GAP_NS)) {
            // Stamps go by p̂ alone until the next one.
            let drift = u128::from(gap) * u128::from(self.rate_bound_ppb) / 1_000_000_000;
            let drift = u64::try_from(drift).unwrap_or(u64::MAX);
            self.bound_ns = self
                .bound_ns
                .max(self.last_bound_ns.saturating_add(drift + 1));
            return false;
        }
        self.tightest_ns = self.tightest_ns.min(reading.width());
        if !stepped && gap < SHORTEST_GAP_NS {
            return true;
        }

        let middle = reading.middle();
        // How far the clock bent meanwhile from the line that it was on.
        let mut bend = 0;
        let value = if stepped {
            middle
        } else {
            let predicted = last.real_at(reading.at).0;
            bend = reading.low.saturating_sub(predicted);
            bend = bend.max(predicted.saturating_sub(reading.high));
            let pull = middle.wrapping_sub(predicted).cast_signed() / PULL;
            let drawn = predicted.wrapping_add_signed(pull);
            let value = drawn.clamp(reading.low, reading.high);
            let cycles = reading.at.0 - last.from.0;
            let exact = NsPerCycle::of(value.saturating_sub(last.real.0), cycles);
            last.rate = exact.unwrap_or(last.rate);
            value
        };
        self.last_bound_ns = (reading.high - value).max(value - reading.low);
        self.bound_ns = self.bound_ns.max(self.last_bound_ns + bend);
        if stepped {
            (self.far, self.next_far) = (reading, reading);
        }
        self.update_rate(&reading, BASELINE_AFTER_STEP_NS);
        if self.pieces.len() == PIECES {
            self.pieces.pop_front();
        }
        let piece = Piece {
            from: reading.at,
            real: RealNs(value),
            rate: self.rate,
        };
        self.pieces.push_back(if stepped {
            // Stamps from the first read after the step are on this side of it.
            Piece {
                from: tsc[0],
                real: piece.real_at(tsc[0]),
                ..piece
            }
        } else {
            piece
        });
        true
    }

    /// p̂ from the far and this near reading.
    fn update_rate(&mut self, near: &Reading, shortest: u64) {
        let span = near.middle().saturating_sub(self.far.middle());
        if span < shortest {
            return;
        }
        let Some(rate) = NsPerCycle::of(span, near.at.0 - self.far.at.0) else {
            return;
        };
        let error = u128::from(self.far.width() + near.width()).div_ceil(2);
        self.rate = rate;
        let ppb = (error * 1_000_000_000).div_ceil(u128::from(span));
        self.rate_bound_ppb = u64::try_from(ppb).unwrap_or(u64::MAX);
        let next_span = near.middle().saturating_sub(self.next_far.middle());
        if span > LONGEST_BASELINE_NS {
            (self.far, self.next_far) = (self.next_far, *near);
        } else if next_span > LONGEST_BASELINE_NS / 2 {
            self.next_far = *near;
        }
    }

    /// Whether a reading was interrupted: much wider than the narrowest.
    pub(super) fn is_wide(&self, tsc: [TscCycles; 2], real: [RealNs; 2]) -> bool {
        reading((tsc, real), self.rate)
            .is_none_or(|reading| reading.width() > WIDE * self.tightest_ns + 20)
    }

    /// p̂ with its error, for the file.
    pub fn report(&self) -> CounterReport {
        CounterReport {
            ns_per_cycle_2_58: self.rate,
            rate_bound_ppb: self.rate_bound_ppb,
        }
    }

    /// p̂.
    pub fn rate(&self) -> NsPerCycle {
        self.rate
    }

    /// Greatest relative error of p̂ as an average over its baseline, parts per
    /// billion.
    pub fn rate_bound_ppb(&self) -> u64 {
        self.rate_bound_ppb
    }

    /// Greatest error so far, ns: at each cross-timestamp the distance to its
    /// farther bound, and between two of them as much more as the host clock was
    /// seen to bend from the line in that time, as it does while it is slewed. A
    /// bend shows at the next cross-timestamp only, so the bound in a file's last
    /// statistics is the one that covers all of it.
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// The conversion in force.
    pub(super) fn conversion(&self) -> CounterConversion {
        let mut pieces = [*self.pieces.back().expect("there is always one"); PIECES];
        for (copy, piece) in pieces.iter_mut().zip(self.pieces.iter().rev()) {
            *copy = *piece;
        }
        CounterConversion { pieces }
    }
}

/// `None` if the clock was set in between.
fn reading((tsc, real): ([TscCycles; 2], [RealNs; 2]), rate: NsPerCycle) -> Option<Reading> {
    let span = tsc[1].0.checked_sub(tsc[0].0)?;
    let at = tsc[0].0 + span / 2;
    // Readings are truncated to nanoseconds: the clock was up to 1 ns further.
    let low = real[1].0.checked_sub(rate.duration_ns(tsc[1].0 - at))?;
    let high = real[0].0 + rate.duration_ns(at - tsc[0].0) + 1;
    (low <= high).then_some(Reading {
        at: TscCycles(at),
        low,
        high,
    })
}

/// The latest pieces of the clock, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterConversion {
    pieces: [Piece; PIECES],
}

impl CounterConversion {
    /// The wall-clock time at a counter value. Older than the oldest piece it is
    /// carried on backwards.
    #[inline]
    pub fn to_real(&self, at: TscCycles) -> RealNs {
        let piece = self.pieces.iter().find(|piece| at >= piece.from);
        piece.unwrap_or(&self.pieces[PIECES - 1]).real_at(at)
    }
}

#[cfg(test)]
mod tests;
