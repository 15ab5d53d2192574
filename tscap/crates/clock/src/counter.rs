//! A raw counter against CLOCK_REALTIME, as a capture needs it: the feed-forward
//! clock at each cross-timestamp, joined by straight lines.
//!
//! At a cross-timestamp the absolute clock of the [model](FeedForward) lies inside of
//! its bounds. Stamps between two of them are converted by the line that joins them,
//! so that the time in the file never jumps when θ̂ changes.

mod lines;

use std::collections::VecDeque;

use self::lines::{BeforeJump, PIECES};
pub use self::lines::{ClockLine, CounterConversion};
use super::reading::Reading;
use super::segments::STAMPS_WAIT;
use super::{Bracket, CounterReport, FeedForward, NsPerCycle, RealNs, Scale, TscCycles, Verdict};

/// The clock.
#[derive(Clone, Debug)]
pub struct CounterClock {
    model: FeedForward,
    pieces: VecDeque<ClockLine>,
    /// Until the counter comes there again after it went back.
    before: Option<BeforeJump>,
    has_lost_waiting: bool,
    /// The counter at the latest readings, used or not, the latest one last: stamps from
    /// before the first of them wait no more.
    latest_readings: [TscCycles; STAMPS_WAIT],
    /// The greatest distance of the clock from the farther bound of a reading, ns.
    bound_ns: u64,
    /// The greatest since it was asked for last.
    recent_bound_ns: u64,
    /// Cross-timestamps passed over because they were interrupted.
    wide: u64,
    /// How far off stamps can be if the system clock bent or was set, or the counter jumped, by
    /// no more than those passed over since the latest one of use show, ns.
    hidden_ns: u64,
    /// How often the bound was raised by that.
    raised: u64,
}

/// What a cross-timestamp was to the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOutcome {
    /// Of use.
    Used {
        /// Counter values at which nobody can tell how the reference went: it may have bent
        /// more than once since the latest cross-timestamp of use.
        unknown: Option<(TscCycles, TscCycles)>,
    },
    /// Interrupted or torn: of no use.
    PassedOver,
    /// The counter jumped: the clock begins anew.
    Jumped {
        /// By how much the reference was ahead of the clock, ns.
        by_ns: i64,
    },
}

/// The first `p̂` needs at least this baseline: with brackets of 50 ns it is then
/// good to 5 ppm, and to 0.05 ppm after a second.
const SHORTEST_BASELINE_NS: u64 = 10_000_000;
/// The first `p̂` is good to 10 ppm.
const FIRST_RATE_PPB: u64 = 10_000;
/// Cross-timestamps closer together than this make no piece of their own, so
/// that the pieces kept reach back over many drains.
const SHORTEST_GAP_NS: u64 = 20_000;
/// A cross-timestamp this many times wider than the narrowest was interrupted.
const WIDE: u64 = 2;
/// A wide cross-timestamp is passed over unless the one before is this old.
const LONGEST_GAP_NS: u64 = 100_000_000;
/// A line is left by a jump if by more than this part of the time: a clock is slewed by a tenth at
/// most ([`Scale::HOST`]).
pub(super) const FASTEST_SLEW: u64 = 10;
/// What is off by more than this part of the time is a jump or a slew beyond what `adjtimex` takes
/// as a frequency.
const SMALL_JUMP: u64 = 1_000;
/// Two cross-timestamps this far apart, some drains, may have several bends between them.
const STALL_NS: u64 = 30_000_000;

impl CounterClock {
    /// Begins with two cross-timestamps of one segment; `None` if they are torn,
    /// less than 10 ms apart, too wide for a rate within 10 ppm, or if one was
    /// interrupted: the bound would never fall below its width.
    pub(super) fn new(first: &Bracket, second: &Bracket) -> Option<Self> {
        let span = second.real[0].0.checked_sub(first.real[0].0)?;
        match span {
            0..SHORTEST_BASELINE_NS => None,
            _ => Self::of(Scale::HOST, first, second, FIRST_RATE_PPB),
        }
    }

    /// The same against a reference of another kind, at any distance, if the rate is within
    /// `rate_ppb`.
    pub fn of(scale: Scale, first: &Bracket, second: &Bracket, rate_ppb: u64) -> Option<Self> {
        let model = FeedForward::new(scale, first, second)?;
        if model.rate_bound_ppb() > rate_ppb {
            return None;
        }
        let far = Reading::new(first, model.rate())?;
        let near = Reading::new(second, model.rate())?;
        let least = far.width().min(near.width());
        let is_interrupted = |reading| is_interrupted(reading, least, model.rate());
        if is_interrupted(&far) || is_interrupted(&near) {
            return None;
        }
        let bound_ns = far.width().div_ceil(2);
        let mut clock = Self {
            pieces: VecDeque::from([ClockLine {
                from: far.at,
                real: RealNs(far.middle()),
                rate: model.rate(),
            }]),
            before: None,
            has_lost_waiting: false,
            latest_readings: [first.tsc[0]; STAMPS_WAIT],
            model,
            bound_ns,
            recent_bound_ns: bound_ns,
            wide: 0,
            hidden_ns: 0,
            raised: 0,
        };
        let line_bound_ns = clock.line_bound_ns(near.at);
        clock.join(&near, line_bound_ns);
        Some(clock)
    }

    /// Takes in one more cross-timestamp.
    pub fn observe(&mut self, bracket: &Bracket) -> CounterOutcome {
        self.forget_before(bracket.tsc);
        let outcome = self.take(bracket);
        self.has_read(bracket);
        outcome
    }

    /// Takes in the first cross-timestamp of use after the system clock was set; `jumped` if
    /// the counter jumped too. The line until now has missed the clock as it would be by
    /// `missed_ns` at most: no more than that can have hidden in readings passed over.
    pub(super) fn observe_step(
        &mut self,
        bracket: &Bracket,
        jumped: bool,
        missed_ns: u64,
    ) -> CounterOutcome {
        self.forget_before(bracket.tsc);
        let reading = Reading::new(bracket, self.model.rate());
        let reading = reading.filter(|_| self.model.restart(bracket, jumped));
        let outcome = match reading {
            None => CounterOutcome::PassedOver,
            Some(reading) => {
                self.hidden_ns = self.hidden_ns.min(missed_ns);
                self.begin_anew(bracket, &reading);
                CounterOutcome::Used { unknown: None }
            }
        };
        self.has_read(bracket);
        outcome
    }

    /// Whatever a reading of the counter is worth otherwise: a counter that comes again to
    /// where it was before it went back shows values of its own.
    pub(super) fn forget_before(&mut self, tsc: [TscCycles; 2]) {
        let farthest = tsc[0].max(tsc[1]);
        self.before = self.before.filter(|before| farthest < before.from);
    }

    /// Whether stamps that wait from before the latest step or jump have lost their times: the
    /// counter went back among their values.
    pub(super) fn has_lost_waiting(&self) -> bool {
        self.has_lost_waiting
    }

    fn has_read(&mut self, bracket: &Bracket) {
        self.latest_readings.rotate_left(1);
        self.latest_readings[STAMPS_WAIT - 1] = bracket.tsc[0];
    }

    fn take(&mut self, bracket: &Bracket) -> CounterOutcome {
        let Some(reading) = Reading::new(bracket, self.model.rate()) else {
            self.cover(bracket);
            return CounterOutcome::PassedOver;
        };
        let last = *self.latest();
        let gap = reading.at.0.saturating_sub(last.from.0);
        let gap = self.model.rate().duration_ns(gap);
        let line = last.real_at(reading.at).0;
        let off_ns = line.abs_diff(line.clamp(reading.low, reading.high));
        // A jump shows in any reading.
        let has_jumped = off_ns > gap / FASTEST_SLEW;
        let is_early = reading.at > last.from && gap < LONGEST_GAP_NS;
        if is_early && !has_jumped && self.is_too_wide(&reading) {
            // Stamps go by the last line until the next one.
            self.wide += 1;
            self.raise(self.line_bound_ns(reading.at));
            let hidden_ns = reading.farther_ns(line).saturating_add(off_ns / 8);
            self.hidden_ns = self.hidden_ns.max(hidden_ns);
            if off_ns > 0 {
                // The clock has left the line since.
                self.widen_for_unseen_steps();
            }
            return CounterOutcome::PassedOver;
        }
        let line_bound_ns = self.line_bound_ns(reading.at);
        match self.model.observe(bracket) {
            Verdict::Torn | Verdict::Implausible => {
                self.cover(bracket);
                CounterOutcome::PassedOver
            }
            Verdict::Jumped { by_ns } => {
                self.begin_anew(bracket, &reading);
                CounterOutcome::Jumped { by_ns }
            }
            Verdict::Used => {
                let is_unknown = self.may_have_bent_twice(gap);
                if is_unknown {
                    // Of stamps converted meanwhile no more is known than that.
                    self.widen_for_unseen_steps();
                }
                self.hidden_ns = 0;
                if gap >= SHORTEST_GAP_NS {
                    self.join(&reading, line_bound_ns);
                }
                CounterOutcome::Used {
                    unknown: is_unknown.then_some((last.from, reading.at)),
                }
            }
        }
    }

    /// Whether the reference may have changed its rate more than once in the `gap` before
    /// the latest reading, ns: not in a short one; nor in a long one if it ran straight
    /// over all of that, and over as long before.
    fn may_have_bent_twice(&self, gap: u64) -> bool {
        gap > STALL_NS && self.model.straight_ns() / 2 < gap
    }

    /// A counter that stands tells no time: its stamps are off by as much as the
    /// reference has gone on.
    fn cover(&mut self, bracket: &Bracket) {
        let Bracket { tsc, real } = bracket;
        if tsc[0] == tsc[1] {
            let line = self.latest().real_at(tsc[0]).0;
            self.raise(real[1].0.saturating_sub(line));
        }
    }

    /// The bound takes in what may have happened unseen since the latest cross-timestamp
    /// of use.
    pub fn widen_for_unseen_steps(&mut self) {
        self.raised += u64::from(self.hidden_ns > self.bound_ns);
        self.raise(self.hidden_ns);
    }

    /// How often the bound was raised for what may have happened unseen.
    pub(super) fn raised(&self) -> u64 {
        self.raised
    }

    fn raise(&mut self, bound_ns: u64) {
        self.bound_ns = self.bound_ns.max(bound_ns);
        self.recent_bound_ns = self.recent_bound_ns.max(bound_ns);
    }

    /// The bound of stamps since the last call, ns.
    pub(super) fn take_recent_bound_ns(&mut self) -> u64 {
        let bound_ns = std::mem::take(&mut self.recent_bound_ns);
        self.of_stamps(bound_ns)
    }

    fn latest(&self) -> &ClockLine {
        self.pieces.back().expect("there is always one")
    }

    /// Greatest error of the latest line at a counter value beyond it, ns, while the
    /// host's clock runs as it did.
    fn line_bound_ns(&self, at: TscCycles) -> u64 {
        let expected = self.model.estimate(at);
        let off = expected.real.0.abs_diff(self.latest().real_at(at).0);
        // Both are rounded.
        expected.bound_ns.saturating_add(off + 1)
    }

    /// Joins the latest piece to the clock at `reading`, and begins one there. The line
    /// until now is good to `line_bound_ns` there, if the host's clock did not bend: if
    /// it did, then it left this line somewhere, and the one that joins the two is off
    /// by as much more as both differ. If it was set by less than the reading shows, or bent
    /// and bent back, then it was as far from the line as it is now.
    fn join(&mut self, reading: &Reading, line_bound_ns: u64) {
        let value = self.model.estimate(reading.at).real.0;
        let rate = self.model.local_rate();
        let last = self.pieces.back_mut().expect("there is always one");
        let line = last.real_at(reading.at).0;
        let (bend, farther_ns) = (line.abs_diff(value), reading.farther_ns(line));
        let cycles = reading.at.0 - last.from.0;
        let exact = NsPerCycle::of(value.saturating_sub(last.real.0), cycles);
        last.rate = exact.unwrap_or(last.rate);
        self.add(ClockLine {
            from: reading.at,
            real: RealNs(value),
            rate,
        });
        self.raise(line_bound_ns.saturating_add(bend));
        if bend > self.model.rate().duration_ns(cycles) / SMALL_JUMP {
            // Of a counter that went back so little, stamps are of the lines before, which may
            // have been as steep.
            self.raise(line_bound_ns.saturating_add(bend + bend / 8));
        }
        self.raise(farther_ns);
        self.raise(reading.farther_ns(value));
    }

    /// A piece of its own from the first reading after a step or a jump on: stamps
    /// from there on are on this side of it; unless the counter went back.
    fn begin_anew(&mut self, bracket: &Bracket, reading: &Reading) {
        // What hid in wide readings before this one may have been it.
        self.widen_for_unseen_steps();
        self.hidden_ns = 0;
        self.has_lost_waiting = false;
        let last = *self.latest();
        if let Some(back) = last.from.0.checked_sub(reading.at.0) {
            // Above what the counter shows by now, and below all stamps that may wait: where
            // both can't be, these are ambiguous.
            let oldest = self.latest_readings[0].0;
            let from = oldest.min((last.from.0 - back / 4).max(bracket.tsc[1].0 + 1));
            let earlier = self.pieces.iter().nth_back(1).unwrap_or(&last);
            self.before = (bracket.tsc[1].0 < from).then_some(BeforeJump {
                from: TscCycles(from),
                pieces: [last, *earlier],
            });
            self.has_lost_waiting = self.before.is_none();
            self.pieces.clear();
        }
        let value = reading.middle();
        let piece = ClockLine {
            from: reading.at,
            real: RealNs(value),
            rate: self.model.rate(),
        };
        self.add(ClockLine {
            from: bracket.tsc[0],
            real: piece.real_at(bracket.tsc[0]),
            ..piece
        });
        self.raise(reading.farther_ns(value));
    }

    fn add(&mut self, piece: ClockLine) {
        if self.pieces.len() == PIECES {
            self.pieces.pop_front();
        }
        self.pieces.push_back(piece);
    }

    fn is_too_wide(&self, reading: &Reading) -> bool {
        is_interrupted(reading, self.model.least_width_ns(), self.rate())
    }

    /// Whether a reading was interrupted: much wider than the narrowest.
    pub fn is_wide(&self, bracket: &Bracket) -> bool {
        let reading = Reading::new(bracket, self.model.rate());
        reading.is_none_or(|reading| self.is_too_wide(&reading))
    }

    /// p̂ with its error.
    pub fn report(&self) -> CounterReport {
        CounterReport {
            ns_per_cycle_2_58: self.rate(),
            rate_bound_ppb: self.rate_bound_ppb(),
            raw: None,
        }
    }

    /// How many cross-timestamps were passed over because they were interrupted.
    pub fn wide(&self) -> u64 {
        self.wide
    }

    /// The model with all that it knows.
    pub fn model(&self) -> &FeedForward {
        &self.model
    }

    /// p̂.
    pub fn rate(&self) -> NsPerCycle {
        self.model.rate()
    }

    /// Greatest relative error of p̂ as an average over its baseline, parts per
    /// billion.
    pub fn rate_bound_ppb(&self) -> u64 {
        self.model.rate_bound_ppb()
    }

    /// Greatest error so far, ns: at each cross-timestamp the distance to its
    /// farther bound, and between two of them as much more as the host clock was
    /// seen to bend from the line in that time, as it does while it is slewed. A
    /// bend shows at the next cross-timestamp of use.
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// The same of a stamp, which is a whole number of counts and becomes one of nanoseconds:
    /// both ends are rounded, and the clock goes on for as long as the counter shows one value.
    /// After a cross-timestamp that was passed over, until the next one of use, it takes in
    /// that the host clock may have bent.
    pub(super) fn stamp_bound_ns(&self) -> u64 {
        self.of_stamps(self.bound_ns.max(self.hidden_ns))
    }

    /// What a bend since the latest cross-timestamp of use may make of the bound of stamps, ns;
    /// 0 if that was the latest one.
    pub(super) fn open_bound_ns(&self) -> u64 {
        match self.hidden_ns {
            0 => 0,
            hidden_ns => self.of_stamps(hidden_ns),
        }
    }

    fn of_stamps(&self, bound_ns: u64) -> u64 {
        bound_ns + self.rate().count_ns() + 1
    }

    /// The conversion in force.
    pub fn conversion(&self) -> CounterConversion {
        CounterConversion::new(&self.pieces, self.before)
    }
}

/// Whether it is much wider than the least. Either may seem to be shorter or longer by a value
/// of a coarse counter.
fn is_interrupted(reading: &Reading, least_ns: u64, rate: NsPerCycle) -> bool {
    reading.width() > WIDE * (least_ns + rate.count_ns()) + 20
}

#[cfg(test)]
mod tests;
