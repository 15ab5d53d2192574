//! Which period of time is the current one: pure.

use std::time::Duration;

use super::Period;
use tscap_clock::{MonoNs, RealNs};

/// The current period, and when the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    is_multiple: bool,
    /// Length of a period, ns.
    length: u64,
    /// Begin of the next period.
    deadline: MonoNs,
    /// The same in wall-clock time, where that decides.
    boundary: RealNs,
}

impl Schedule {
    /// Begins at `start`, which `to_real` gives in wall-clock time.
    pub fn new(period: Period, start: MonoNs, to_real: impl Fn(MonoNs) -> RealNs) -> Self {
        let (is_multiple, length) = match period {
            Period::Every(length) => (false, length),
            Period::MultipleOf(length) => (true, length),
        };
        let length = ns(length);
        let mut schedule = Self {
            is_multiple,
            length,
            deadline: MonoNs(start.0.saturating_add(length)),
            boundary: RealNs(0),
        };
        schedule.clock_was_set(start, to_real);
        schedule
    }

    /// When the next period begins.
    pub fn deadline(&self) -> MonoNs {
        self.deadline
    }

    /// Moves on to the period that `at` lies in, which is past the deadline.
    /// Gives its start.
    pub fn move_on(&mut self, at: MonoNs, to_real: impl Fn(MonoNs) -> RealNs) -> RealNs {
        let at = at.max(self.deadline);
        if self.is_multiple {
            // Not before the boundary, by whatever the offset has moved since.
            let now = to_real(at).max(self.boundary);
            let start = now.0 - now.0 % self.length;
            self.set_boundary(at, now);
            RealNs(start)
        } else {
            let start = at.0 - (at.0 - self.deadline.0) % self.length;
            self.deadline = MonoNs(start.saturating_add(self.length));
            to_real(MonoNs(start))
        }
    }

    /// The system clock was set.
    pub fn clock_was_set(&mut self, now: MonoNs, to_real: impl Fn(MonoNs) -> RealNs) {
        if self.is_multiple {
            self.set_boundary(now, to_real(now));
        }
    }

    fn set_boundary(&mut self, at: MonoNs, now: RealNs) {
        let left = self.length - now.0 % self.length;
        self.boundary = RealNs(now.0.saturating_add(left));
        self.deadline = MonoNs(at.0.saturating_add(left));
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos())
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: u64 = 1_000_000_000;

    fn real(offset: u64) -> impl Fn(MonoNs) -> RealNs {
        move |mono| RealNs(mono.0 + offset)
    }

    #[test]
    fn equal_periods_follow_the_start_whatever_the_clock_is_set_to() {
        let period = Period::Every(Duration::from_secs(10));
        let mut schedule = Schedule::new(period, MonoNs(7 * S), real(100 * S));
        assert_eq!(schedule.deadline(), MonoNs(17 * S));
        let start = schedule.move_on(MonoNs(17 * S + 3), real(100 * S));
        assert_eq!((start, schedule.deadline().0), (RealNs(117 * S), 27 * S));
        schedule.clock_was_set(MonoNs(20 * S), real(5000 * S));
        assert_eq!(schedule.deadline(), MonoNs(27 * S));
        // Periods in which nobody was there are left out.
        let start = schedule.move_on(MonoNs(49 * S), real(5000 * S));
        assert_eq!((start, schedule.deadline().0), (RealNs(5047 * S), 57 * S));
    }

    #[test]
    fn multiples_of_the_clock_follow_it() {
        let period = Period::MultipleOf(Duration::from_secs(60));
        // 13 s after a minute.
        let mut schedule = Schedule::new(period, MonoNs(3 * S), real(610 * S));
        assert_eq!(schedule.deadline(), MonoNs(50 * S));
        let start = schedule.move_on(MonoNs(50 * S), real(610 * S));
        assert_eq!((start, schedule.deadline().0), (RealNs(660 * S), 110 * S));
        // Set back by 20 s in the middle: the minute begins later.
        schedule.clock_was_set(MonoNs(60 * S), real(590 * S));
        assert_eq!(schedule.deadline(), MonoNs(70 * S), "660 s again");
        let start = schedule.move_on(MonoNs(70 * S), real(590 * S));
        assert_eq!((start, schedule.deadline().0), (RealNs(660 * S), 130 * S));
    }

    #[test]
    fn an_offset_that_moves_a_little_does_not_repeat_a_period() {
        let period = Period::MultipleOf(Duration::from_secs(60));
        let mut schedule = Schedule::new(period, MonoNs(0), real(600 * S));
        let start = schedule.move_on(MonoNs(60 * S), real(600 * S - 40));
        assert_eq!(start, RealNs(660 * S));
        assert_eq!(schedule.deadline(), MonoNs(120 * S));
    }

    proptest! {
        #[test]
        fn the_period_is_the_one_that_the_time_lies_in(
            length in 1u64..1_000_000_000_000,
            is_multiple: bool,
            start in 0u64..1_000_000_000_000_000,
            offset in 0u64..2_000_000_000_000_000_000,
            after in 0u64..1_000_000_000_000_000,
        ) {
            let duration = Duration::from_nanos(length);
            let period = if is_multiple {
                Period::MultipleOf(duration)
            } else {
                Period::Every(duration)
            };
            let mut schedule = Schedule::new(period, MonoNs(start), real(offset));
            let first = schedule.deadline();
            prop_assert!(first.0 > start && first.0 <= start + length);
            let at = MonoNs(first.0 + after);
            let begin = schedule.move_on(at, real(offset));
            let begin = begin.0 - offset;
            prop_assert!(begin <= at.0 && at.0 < begin + length);
            prop_assert_eq!(schedule.deadline().0, begin + length);
            prop_assert_eq!((begin - first.0) % length, 0);
        }
    }
}
