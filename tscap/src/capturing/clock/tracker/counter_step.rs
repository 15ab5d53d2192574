//! Counter values that stamps from both sides of a step or a jump can have.

use crate::capturing::clock::{Bracket, NsPerCycle, TscCycles};

/// Where the time of a counter's stamps is ambiguous.
#[derive(Clone, Debug)]
pub(super) struct CounterStep {
    /// Counter before the latest cross-timestamp of the usual width: only as far as that
    /// its clock was not set for certain.
    latest: TscCycles,
    /// Counter values between which the clock was set last, or went nobody knows how.
    values: Option<(TscCycles, TscCycles)>,
    /// Greatest value that the counter can have shown before it went back.
    before_jump: Option<TscCycles>,
    /// Counter before a step that the counter's clock could not be told of yet.
    pending_after: Option<TscCycles>,
}

impl CounterStep {
    pub fn new(latest: TscCycles) -> Self {
        Self {
            latest,
            values: None,
            before_jump: None,
            pending_after: None,
        }
    }

    /// The values between which a stamp is ambiguous.
    pub fn values(&self) -> Option<(TscCycles, TscCycles)> {
        self.values
    }

    /// The clock was set after the latest certain cross-timestamp.
    pub fn begin(&mut self) {
        self.pending_after.get_or_insert(self.latest);
    }

    /// Whether there is a step that the counter's clock was not told of yet.
    pub fn is_pending(&self) -> bool {
        self.pending_after.is_some()
    }

    /// The counter's clock took in a reading that ended at `until`, and with it the step;
    /// it can't tell how the reference went between the values `unknown`.
    pub fn used(&mut self, until: TscCycles, unknown: Option<(TscCycles, TscCycles)>) {
        if let Some(after) = self.pending_after.take() {
            self.values = Some((after, until));
            self.before_jump = None;
        }
        if let Some((after, until)) = unknown {
            self.values = Some(joined(self.values, after, until));
        }
    }

    /// A reading that is of no use leaves the step to the next one: until then either
    /// side may be any stamp's own.
    pub fn passed_over(&mut self) {
        let step = self.pending_after.map(|after| (after, TscCycles(u64::MAX)));
        self.values = step.or(self.values);
    }

    /// The clock went ahead of the counter by so much before a reading.
    pub fn jumped(&mut self, bracket: &Bracket, by_ns: i64, rate: NsPerCycle) {
        let ends = [self.latest, bracket.tsc[1]];
        let back = cycles_back(bracket, by_ns, rate);
        self.values = Some(around_jump(ends, back));
        self.before_jump = Some(TscCycles(ends[1].0.saturating_add(back)));
    }

    /// A counter that went back and has come as far as it was shows values that are new,
    /// but for those that it showed after the latest reading before.
    pub fn come_as_far(&mut self, tsc: TscCycles) {
        let has_come = |(after, from): &(TscCycles, TscCycles)| from <= after && tsc >= *after;
        if let Some((after, _)) = self.values.filter(has_come) {
            let greatest = self.before_jump.filter(|greatest| *greatest > after);
            self.values = greatest.map(|greatest| (after, greatest));
        }
    }

    /// The clock was not set before this counter value, for certain.
    pub fn is_certain_until(&mut self, tsc: TscCycles) {
        self.latest = tsc;
    }
}

/// How far a counter went back when the clock went ahead of it by so much, 0 if it went
/// forward. A microsecond and the reading's length cover how far off the clock was.
fn cycles_back(bracket: &Bracket, by_ns: i64, rate: NsPerCycle) -> u64 {
    if by_ns <= 0 {
        return 0;
    }
    let back = rate.cycles_in(by_ns.saturating_add(1_000)).unsigned_abs();
    back.saturating_add(bracket.cycles())
}

/// Counter values that stamps from both sides of a jump can have, where `ends` are those of
/// the readings on either side: if it went back by less than these are apart, as much more
/// on both.
fn around_jump([after, from]: [TscCycles; 2], back: u64) -> (TscCycles, TscCycles) {
    if from < after {
        return (after, from);
    }
    (
        TscCycles(after.0.saturating_sub(back)),
        TscCycles(from.0.saturating_add(back)),
    )
}

/// The values of a step and those from `after` to `until`, if these follow on it: stamps
/// from before may still wait.
fn joined(
    step: Option<(TscCycles, TscCycles)>,
    after: TscCycles,
    until: TscCycles,
) -> (TscCycles, TscCycles) {
    match step.filter(|(_, from)| *from >= after) {
        Some((earlier, from)) if earlier < from => (earlier.min(after), from.max(until)),
        // The counter went back.
        Some((earlier, _)) if until < earlier => (earlier, until),
        _ => (after, until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_takes_in_the_one_before_whose_stamps_it_follows() {
        let joined = |step: Option<(u64, u64)>| {
            let step = step.map(|(after, from)| (TscCycles(after), TscCycles(from)));
            joined(step, TscCycles(50), TscCycles(90))
        };
        for (before, expected) in [
            (None, (50, 90)),
            (Some((30, 60)), (30, 90)),
            (Some((30, 50)), (30, 90)),
            (Some((30, 49)), (50, 90)),
            (Some((60, 95)), (50, 95)),
            // The counter went back.
            (Some((200, 100)), (200, 90)),
        ] {
            let (after, from) = joined(before);
            assert_eq!((after.0, from.0), expected, "{before:?}");
        }
    }
}
