//! Which stamps nobody can tell the side of: of a step, a jump, or both.
//!
//! An event shows at a reading, and happened at any time since the latest reading that is certain
//! that it had not. CLOCK_MONOTONIC tells how long that is, whatever became of the other clocks.
//! The stamps' clock then had either the values that follow on those of the certain reading, or
//! those that lead to the ones of the new reading; and where readings of no use lie between, those
//! about the values of these. All are ambiguous while stamps from then may wait.

use crate::ambiguous::PARTS;
use crate::segments::STAMPS_WAIT;
use crate::{Ambiguous, MonoNs, StampRange};

/// The stamps' clock at a reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// CLOCK_MONOTONIC at both ends.
    pub mono: [MonoNs; 2],
    /// The stamps' clock no later than at the first end, and no earlier than at the last.
    pub values: [u64; 2],
}

/// How the stamps' clock went on since the latest certain reading, in its units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    /// By CLOCK_MONOTONIC, from the first end of the certain reading to the last end of this one.
    pub expected: u64,
    /// The same from the reading that is doubted.
    pub since_doubted: u64,
    /// How much farther CLOCK_MONOTONIC went than the stamps' clock.
    pub missing: i128,
    /// By so much both may differ because the clocks of a reading are read one after the other.
    pub tolerance: u64,
}

/// Values that the stamps' clock may have had on either side of what happened.
#[derive(Clone, Debug)]
pub(super) struct Ambiguity {
    /// The latest reading before whose first end nothing happened for certain.
    certain: Seen,
    /// The reading that was it until this was doubted.
    doubted: Option<Seen>,
    /// The latest readings: stamps from before the first of them wait no more.
    readings: [Seen; STAMPS_WAIT],
    /// The least and the greatest value that the clock can have had at the certain reading, as
    /// readings of no use since then show it.
    unresolved: Option<[u64; 2]>,
    /// The latest events: those whose stamps may wait, and one more.
    events: Vec<Event>,
    /// Where the latest of them was over.
    since: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    /// Values that go on from before it, those that lead to what it led to, and those about what
    /// was read in between.
    values: [StampRange; PARTS],
    /// The least value that follows on those before it.
    after: u64,
    /// Those of all of these that the clock has left behind: they do not come again.
    left: StampRange,
    /// How many readings came after the event.
    age: usize,
    /// Whether stamps of either side are converted differently.
    parts_times: bool,
    /// Whether the values that follow are known: else the next reading tells again of all of it.
    is_resolved: bool,
}

impl Ambiguity {
    /// Begins with the first reading.
    pub fn new(first: Seen) -> Self {
        Self {
            certain: first,
            doubted: None,
            readings: [first; STAMPS_WAIT],
            unresolved: None,
            events: Vec::with_capacity(STAMPS_WAIT + 2),
            since: None,
        }
    }

    /// One more reading, of whatever use, comes next.
    pub fn has_read(&mut self, seen: &Seen) {
        let farthest = seen.values[0].max(seen.values[1]);
        for event in &mut self.events {
            event.age += 1;
            if !event.may_wait() {
                event.is_over(farthest);
            }
        }
        let over = self.events.iter().rposition(|it| !it.may_wait());
        self.events.drain(..over.unwrap_or(0));
    }

    /// How the clock went on, where so many ns are so many of its units.
    pub fn gone(&self, seen: &Seen, units: impl Fn(u64) -> u64) -> Gone {
        let between = |from: MonoNs, until: MonoNs| units(until.0.saturating_sub(from.0));
        let expected = between(self.certain.mono[0], seen.mono[1]);
        let went = i128::from(seen.values[1]) - i128::from(self.certain.values[0]);
        let widths = [&self.certain, seen].map(|it| between(it.mono[0], it.mono[1]));
        let doubted = self.doubted.as_ref();
        Gone {
            expected,
            since_doubted: doubted.map_or(0, |it| between(it.mono[0], seen.mono[1])),
            missing: i128::from(expected) - went,
            tolerance: widths[0].saturating_add(widths[1]),
        }
    }

    /// What happened may have been over by the latest reading.
    pub fn doubt_latest(&mut self) {
        let earliest = self.readings[0];
        if earliest.mono[0] < self.certain.mono[0] {
            self.doubted = Some(std::mem::replace(&mut self.certain, earliest));
        }
    }

    /// Nothing has happened before this reading.
    pub fn is_certain(&mut self, seen: Seen) {
        self.certain = seen;
        self.doubted = None;
        self.has_waiting_from(seen);
    }

    /// Whether something has happened that is not resolved yet.
    pub fn has_unresolved(&self) -> bool {
        self.unresolved.is_some()
    }

    /// A small event may hide in this reading.
    pub fn is_uncertain(&mut self, seen: Seen) {
        self.has_waiting_from(seen);
    }

    /// Something has happened, and it takes another reading to convert what follows.
    pub fn is_unresolved(&mut self, seen: Seen, gone: Gone) {
        let [low, high] = [
            seen.values[0].min(seen.values[1]),
            seen.values[0].max(seen.values[1]),
        ]
        .map(|value| value.saturating_sub(gone.expected));
        let [least, greatest] = self.unresolved.unwrap_or([low, high]);
        self.unresolved = Some([least.min(low), greatest.max(high)]);
        self.begin(seen, gone, None, true);
        let event = self.events.last_mut().expect("it began");
        event.after = event.after.min(least.min(low));
        event.values[0] = StampRange::new(event.after, u64::MAX);
        event.is_resolved = false;
        self.has_waiting_from(seen);
    }

    /// Something has happened since the certain reading, or since `after`, and is over at the end
    /// of this one. Where the clock went back, stamps of before that may still wait are ambiguous
    /// if `has_lost_waiting`: else they have times of their own.
    pub fn happened(
        &mut self,
        seen: Seen,
        gone: Gone,
        after: Option<u64>,
        has_lost_waiting: bool,
        parts_times: bool,
    ) {
        self.begin(seen, gone, after, parts_times);
        let went_back = gone.missing > i128::from(gone.tolerance);
        if went_back && has_lost_waiting {
            let oldest = self.readings[0].values[0];
            let before = StampRange::new(oldest.wrapping_sub(1), self.certain.values[0]);
            let event = self.events.last_mut().expect("it began");
            event.values[0] = event.values[0].hull(before);
            event.after = event.after.min(oldest);
        }
        self.unresolved = None;
        self.is_certain(seen);
    }

    /// The ranges of an event until this reading.
    fn begin(&mut self, seen: Seen, gone: Gone, after: Option<u64>, parts_times: bool) {
        let certain = self.certain.values[0];
        let after = after.map_or(certain, |after| after.min(certain));
        let until = seen.values[0].max(seen.values[1]);
        // Where the clock jumped, it may run at another rate, or have bent as well.
        let has_jumped = gone.missing.unsigned_abs() > u128::from(gone.tolerance);
        let slack = if has_jumped {
            gone.expected / 1_024 + 1
        } else {
            0
        };
        let length = gone.expected.saturating_add(slack);
        let leads = until.saturating_sub(length);
        let leads_here = if has_jumped {
            StampRange::new(leads, until)
        } else {
            StampRange::new(leads.max(after).min(until), until)
        };
        let farthest = after.saturating_add(length);
        let (goes_on, left) = if until < after {
            (StampRange::new(after, farthest), leads_here)
        } else {
            (
                StampRange::new(after, farthest.max(until)),
                leads_here.hull(StampRange::new(after, until)),
            )
        };
        let unresolved = self.unresolved.map(|[least, greatest]| {
            StampRange::new(least.saturating_sub(slack), greatest.saturating_add(length))
        });
        // What happened before the reading that is doubted may be another event than this one.
        let doubted = self.doubted.map(|it| {
            let before = gone.expected.saturating_sub(gone.since_doubted);
            let least = it.values[0].min(it.values[1]).saturating_sub(before);
            let greatest = it.values[0].max(it.values[1]);
            let after = gone.since_doubted.saturating_add(slack);
            StampRange::new(least, greatest.saturating_add(after))
        });
        let [unresolved, doubted] = [unresolved, doubted].map(|it| it.unwrap_or(StampRange::NONE));
        let between = unresolved.hull(doubted);
        self.events.retain(|it| it.may_wait() && it.is_resolved);
        self.events.push(Event {
            values: [goes_on, leads_here, between],
            after,
            left,
            age: 0,
            parts_times,
            is_resolved: true,
        });
        self.since = Some(until);
    }

    fn has_waiting_from(&mut self, seen: Seen) {
        self.readings.rotate_left(1);
        self.readings[STAMPS_WAIT - 1] = seen;
    }

    /// Where the latest event was over.
    pub fn since(&self) -> Option<u64> {
        self.since
    }

    /// All stamps that are ambiguous now.
    pub fn ambiguous(&self) -> Ambiguous {
        // Of two events at a time stamps may be of before both.
        let waits = self.events.iter().any(|it| it.may_wait() && it.parts_times);
        let counts = |event: &&Event| event.parts_times || (waits && event.may_wait());
        let ranges = self.events.iter().filter(counts);
        Ambiguous::of(ranges.flat_map(|event| event.values))
    }
}

impl Event {
    fn may_wait(&self) -> bool {
        self.age <= STAMPS_WAIT
    }

    /// No stamp of before it waits any more: where the clock comes again, its values are new.
    fn is_over(&mut self, farthest: u64) {
        let [goes_on, ..] = self.values;
        let goes_on = if farthest > self.after {
            StampRange::NONE
        } else {
            goes_on
        };
        self.values = [goes_on, self.left, StampRange::NONE];
    }
}
