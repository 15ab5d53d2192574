//! What a cross-timestamp says: which clocks went on as before, and which stamps are ambiguous.

use super::ambiguity::{Gone, Seen};
use super::{Observation, Tracker};
use crate::counter::{CounterOutcome, FASTEST_SLEW};
use crate::segments::Start;
use crate::{
    Bounds, Bracket, CounterClock, CrossTimestamp, NsPerCycle, Sample, Segment, StampSource,
    StepCause, TscCycles,
};
use tscap_time::NS_PER_S;

/// What CLOCK_BOOTTIME seems to gain on CLOCK_MONOTONIC between two readings that are
/// interrupted, ns; no suspend is shorter.
const SHORTEST_SUSPEND_NS: u64 = 10_000_000;

/// What a reading says of the time since the latest certain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElapsedCheck {
    Certain,
    /// Something small may hide in it.
    Uncertain,
    /// Something has happened, and how the stamps' clock goes on is not known yet.
    Unresolved,
    /// Something has happened, since this value of a counter if it was not the certain reading.
    Happened(Option<TscCycles>),
}

impl Tracker {
    /// Takes in one more cross-timestamp. They must come in order of time.
    pub fn observe(&mut self, cross: &CrossTimestamp) -> Observation {
        self.ambiguity.has_read(&Seen::of(self.source, cross));
        let was_set = std::mem::take(&mut self.was_set);
        if was_set {
            self.ambiguity.doubt_latest();
        }
        let (Some(sample), Some((low, high))) = (Sample::new(cross), cross.mono_to_real()) else {
            return self.observe_torn(cross);
        };
        self.kept.offer(sample);
        self.usual.take(sample.width_ns);
        let was_suspended = self.was_suspended(cross);
        let seen = Bounds { low, high };
        let segment = *self.current();
        let both = segment.mono_to_real.intersect(seen);
        // Another offset to TAI sets no clock but TAI.
        let other_tai = segment.tai_offset_s != sample.tai_offset_s;
        let sets_the_clock = other_tai && self.source == StampSource::Tai;
        let both = both.filter(|_| !sets_the_clock);
        match both {
            None => {
                let cause = self.cause_of_step(&segment, &sample, seen, was_suspended);
                self.observe_step(cross, sample, seen, cause)
            }
            Some(both) => self.observe_agreement(cross, sample, [seen, both], was_set),
        }
    }

    /// The clock was set in it, and perhaps before it as well: stamps since the latest certain
    /// reading are of no side that is known.
    fn observe_torn(&mut self, cross: &CrossTimestamp) -> Observation {
        self.torn += 1;
        if let Some((counter, tsc)) = self.counter.as_mut().zip(cross.tsc) {
            counter.forget_before(tsc);
        }
        self.take_course(cross, ElapsedCheck::Unresolved, true);
        Observation::Torn
    }

    fn cause_of_step(
        &self,
        segment: &Segment,
        sample: &Sample,
        seen: Bounds,
        was_suspended: bool,
    ) -> StepCause {
        let step_ns = seen.middle().0 - segment.mono_to_real.middle().0;
        let tai_s = sample.tai_offset_s - segment.tai_offset_s;
        match () {
            () if self.reference.is_some() => StepCause::Reference,
            () if was_suspended => StepCause::Suspend,
            () if segment.mono_to_real.intersect(seen).is_some() => StepCause::Tai,
            () if is_leap(step_ns, tai_s) => StepCause::Leap,
            () => StepCause::Set,
        }
    }

    fn observe_step(
        &mut self,
        cross: &CrossTimestamp,
        sample: Sample,
        seen: Bounds,
        cause: StepCause,
    ) -> Observation {
        let segment = *self.current();
        let step_ns = seen.middle().0 - segment.mono_to_real.middle().0;
        // A suspended machine's CLOCK_MONOTONIC stands while its counter goes on, or begins anew.
        let counter_jump_ns = match cause {
            StepCause::Suspend => None,
            _ => self.counter_jump_ns(cross),
        };
        let start = Start {
            step: Some((step_ns, cause)),
            counter_jump_ns,
        };
        self.segments.begin(cross, &sample, seen, start);
        let mut course = ElapsedCheck::Happened(None);
        if let Some(bracket) = cross.bracket() {
            let has_jumped = self.untold_step == Some(true) || counter_jump_ns.is_some();
            self.untold_step = Some(has_jumped);
            let (of_counter, _) = self.observe_counter(cross, &bracket, sample);
            if self.source == StampSource::Tsc {
                course = of_counter.map_or(course, |outcome| match outcome {
                    CounterOutcome::PassedOver => ElapsedCheck::Unresolved,
                    _ => course,
                });
            }
        }
        // TAI is set together with CLOCK_REALTIME: its stamps feel another offset alone.
        let parts_times =
            self.source != StampSource::Tai || segment.tai_offset_s != sample.tai_offset_s;
        self.take_course(cross, course, parts_times);
        Observation::Stepped {
            step_ns,
            cause,
            counter_jump_ns,
        }
    }

    /// With what it allows by itself and together with the readings before.
    fn observe_agreement(
        &mut self,
        cross: &CrossTimestamp,
        sample: Sample,
        [seen, both]: [Bounds; 2],
        was_set: bool,
    ) -> Observation {
        let segment = *self.current();
        let other_tai = segment.tai_offset_s != sample.tai_offset_s;
        self.segments.saw(seen);
        let is_narrow = !self.is_wide(sample.width_ns);
        // The clock may have been set before, by less than a wide one shows.
        let is_certain = cross.offset.is_some() || is_narrow;
        let mut course = if is_certain {
            ElapsedCheck::Certain
        } else {
            ElapsedCheck::Uncertain
        };
        let mut counter_jump_ns = None;
        if let Some(bracket) = cross.bracket() {
            let (outcome, is_untold) = self.observe_counter(cross, &bracket, sample);
            if let Some(CounterOutcome::Jumped { by_ns }) = outcome {
                counter_jump_ns = Some(by_ns);
            }
            if self.source == StampSource::Tsc {
                let usual = if is_narrow {
                    ElapsedCheck::Certain
                } else {
                    ElapsedCheck::Uncertain
                };
                course = match outcome {
                    None => usual,
                    Some(CounterOutcome::Used { unknown: None }) if !is_untold => usual,
                    Some(CounterOutcome::Used { unknown }) => {
                        ElapsedCheck::Happened(unknown.map(|(after, _)| after))
                    }
                    Some(CounterOutcome::Jumped { .. }) => ElapsedCheck::Happened(None),
                    Some(CounterOutcome::PassedOver) => {
                        // It went back in the reading.
                        let is_torn = bracket.tsc[1] < bracket.tsc[0];
                        if is_untold || is_torn || was_set || self.ambiguity.has_unresolved() {
                            ElapsedCheck::Unresolved
                        } else {
                            ElapsedCheck::Uncertain
                        }
                    }
                };
            }
        }
        if was_set || self.ambiguity.has_unresolved() {
            course = match course {
                ElapsedCheck::Certain => ElapsedCheck::Happened(None),
                ElapsedCheck::Uncertain => ElapsedCheck::Unresolved,
                course => course,
            };
        }
        self.take_course(cross, course, true);
        let certain = is_certain.then_some(both);
        // Another offset to TAI can wait for one that is certain.
        if counter_jump_ns.is_some() || (other_tai && is_certain) {
            let start = Start {
                counter_jump_ns,
                ..Start::default()
            };
            let bounds = certain.unwrap_or(segment.mono_to_real);
            self.segments.begin(cross, &sample, bounds, start);
        } else {
            self.segments.extend(cross, certain);
        }
        match counter_jump_ns {
            Some(jump_ns) => Observation::CounterJumped { jump_ns },
            None => Observation::Agrees,
        }
    }

    /// Whether the machine was suspended since this was looked at last.
    fn was_suspended(&mut self, cross: &CrossTimestamp) -> bool {
        let Some(now) = cross.suspended_ns() else {
            return false;
        };
        let before = self.suspended_ns.replace(now);
        before.is_some_and(|before| now.saturating_sub(before) > SHORTEST_SUSPEND_NS)
    }

    /// What a reading is to the counter's clock, if there is one yet; and whether it was the
    /// first one that could tell it of a step.
    fn observe_counter(
        &mut self,
        cross: &CrossTimestamp,
        bracket: &Bracket,
        sample: Sample,
    ) -> (Option<CounterOutcome>, bool) {
        let previous = self.previous.replace(sample);
        let untold_step = self.untold_step;
        let missed_ns = untold_step.map_or(0, |_| self.missed_ns(cross));
        let other_tai = self.current().tai_offset_s != sample.tai_offset_s;
        let Some(counter) = &mut self.counter else {
            self.begin_counter(cross, bracket);
            return (None, untold_step.is_some());
        };
        let bends = counter.model().counts().bends;
        let outcome = match untold_step {
            Some(has_jumped) => counter.observe_step(bracket, has_jumped, missed_ns),
            None => counter.observe(bracket),
        };
        match outcome {
            CounterOutcome::PassedOver if cross.offset.is_none() => {
                counter.widen_for_unseen_steps()
            }
            CounterOutcome::PassedOver => {}
            CounterOutcome::Used { .. } | CounterOutcome::Jumped { .. } => self.untold_step = None,
        }
        let recent_bound_ns = counter.take_recent_bound_ns();
        self.kept.bound(recent_bound_ns, counter.open_bound_ns());
        self.recent_bound_ns = self.recent_bound_ns.max(recent_bound_ns);
        if counter.model().counts().bends > bends {
            let bend = true;
            self.kept.both_sides(previous, Sample { bend, ..sample });
        }
        let has_jumped = matches!(outcome, CounterOutcome::Jumped { .. });
        if untold_step.is_some() || other_tai || has_jumped {
            self.kept.both_sides(previous, sample);
        }
        (Some(outcome), untold_step.is_some())
    }

    /// Whether a raw counter gives no rate because it is slower than any that can be converted.
    pub fn has_slow_counter(&self) -> bool {
        let first = self
            .first
            .tsc
            .map(|[before, _]| (before, self.first.real[0]));
        let latest = self.previous.and_then(|it| Some((it.tsc?[1], it.real)));
        let Some(((from, start), (until, end))) = first.zip(latest) else {
            return false;
        };
        let cycles = until.0.saturating_sub(from.0);
        let ns = end.0.saturating_sub(start.0);
        let is_enough = self.counter.is_none() && cycles > 1_000;
        is_enough && NsPerCycle::of(ns, cycles).is_none()
    }

    /// Waits for two readings from which a clock of the counter can begin.
    fn begin_counter(&mut self, cross: &CrossTimestamp, bracket: &Bracket) {
        let is_set = self.untold_step.take().is_some();
        let Some(first) = self.first.bracket().filter(|_| !is_set) else {
            self.first = *cross;
            return;
        };
        self.counter = CounterClock::new(&first, bracket);
        if self.counter.is_none() && bracket.cycles() < first.cycles() / 2 {
            self.first = *cross;
        }
    }

    /// Which stamps are ambiguous by that, where either side of an event `parts_times`.
    fn take_course(&mut self, cross: &CrossTimestamp, course: ElapsedCheck, parts_times: bool) {
        let seen = Seen::of(self.source, cross);
        match course {
            ElapsedCheck::Certain => self.ambiguity.is_certain(seen),
            ElapsedCheck::Uncertain => self.ambiguity.is_uncertain(seen),
            ElapsedCheck::Unresolved => {
                let gone = self.gone(&seen);
                self.ambiguity.is_unresolved(seen, gone);
            }
            ElapsedCheck::Happened(after) => {
                let gone = self.gone(&seen);
                let has_lost_waiting = match (self.source, &self.counter) {
                    (StampSource::Tsc, Some(counter)) => counter.has_lost_waiting(),
                    _ => true,
                };
                let after = after.map(|TscCycles(after)| after);
                self.ambiguity
                    .happened(seen, gone, after, has_lost_waiting, parts_times);
            }
        }
    }

    /// How the stamps' clock went on since the latest certain reading.
    fn gone(&self, seen: &Seen) -> Gone {
        let rate = self.counter_rate();
        self.ambiguity.gone(seen, |ns| match rate {
            Some(rate) => {
                let ns = i64::try_from(ns).unwrap_or(i64::MAX);
                rate.cycles_in(ns).unsigned_abs().saturating_add(1)
            }
            None => ns,
        })
    }

    /// That of the stamps' counter against CLOCK_MONOTONIC, which is slewed as CLOCK_REALTIME is.
    fn counter_rate(&self) -> Option<NsPerCycle> {
        let counter = self.counter.as_ref();
        let counter = counter.filter(|_| self.source == StampSource::Tsc);
        counter.map(|counter| counter.model().local_rate())
    }

    /// How far the counter may have parted from CLOCK_MONOTONIC since the latest certain reading.
    fn missed_ns(&self, cross: &CrossTimestamp) -> u64 {
        let gone = self.gone(&Seen::of(self.source, cross));
        let most = gone.missing.unsigned_abs() + u128::from(gone.tolerance);
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        self.counter_rate().map_or(0, |rate| rate.duration_ns(most))
    }

    /// By how much CLOCK_MONOTONIC went ahead of a counter that jumped, ns.
    fn counter_jump_ns(&self, cross: &CrossTimestamp) -> Option<i64> {
        let rate = self.counter_rate()?;
        let gone = self.gone(&Seen::of(self.source, cross));
        let most = u128::from(gone.tolerance) + u128::from(gone.expected / FASTEST_SLEW);
        (gone.missing.unsigned_abs() > most).then(|| {
            let cycles = u64::try_from(gone.missing.unsigned_abs()).unwrap_or(u64::MAX);
            let ns = i64::try_from(rate.duration_ns(cycles)).unwrap_or(i64::MAX);
            if gone.missing < 0 { -ns } else { ns }
        })
    }
}

impl Seen {
    /// The stamps' clock in a cross-timestamp.
    pub(super) fn of(source: StampSource, cross: &CrossTimestamp) -> Self {
        let values = match source {
            StampSource::Ktime => cross.mono.map(|mono| mono.0),
            // It was read after the first of the others.
            StampSource::Tai => {
                let width = cross.width_ns();
                [
                    cross.tai.0.saturating_sub(width),
                    cross.tai.0.saturating_add(width),
                ]
            }
            StampSource::Tsc => cross.tsc.map_or([0; 2], |tsc| tsc.map(|tsc| tsc.0)),
        };
        Self {
            mono: cross.mono,
            values,
        }
    }
}

/// Whether a step is that of a leap second, when TAI − REALTIME changed by so much.
pub(super) fn is_leap(step_ns: i64, tai_s: i64) -> bool {
    tai_s.abs() == 1 && (step_ns + tai_s * NS_PER_S).abs() < NS_PER_S / 100
}
