//! Keeps a converter of real-time priority from starving its core.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use tscap_host::process::thread_cpu_time;

/// The thread's use of its core is looked at this often, after a write.
const PERIOD: Duration = Duration::from_millis(100);
/// The part of the time that is left to others: that which the kernel itself leaves by default
/// (`sched_rt_runtime_us` of `sched_rt_period_us`, sched(7)), but in shorter periods, so that
/// the core is not away for 50 ms at a time, and where the kernel's limit is off.
const FOR_OTHERS: u32 = 20;

/// Looks after the thread that makes it.
#[derive(Debug)]
pub struct Guard {
    began: Instant,
    /// CPU time of the thread by then.
    cpu: Duration,
    rests: SleepTotals,
}

/// What it took from the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SleepTotals {
    /// Times that the thread was made to sleep.
    pub count: u64,
    /// For how long in all.
    pub time: Duration,
}

impl Guard {
    /// For this thread, from now on.
    ///
    /// # Errors
    /// If the kernel does not tell the thread's CPU time.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            began: Instant::now(),
            cpu: thread_cpu_time()?,
            rests: SleepTotals::default(),
        })
    }

    /// Sleeps for as long as the core is owed to others.
    pub(super) fn rest(&mut self) {
        let wall = self.began.elapsed();
        if wall < PERIOD {
            return;
        }
        // It was told before.
        let Ok(cpu) = thread_cpu_time() else { return };
        let owed = owed(wall, cpu.saturating_sub(self.cpu));
        if !owed.is_zero() {
            let begun = Instant::now();
            thread::sleep(owed);
            self.rests.count += 1;
            self.rests.time += begun.elapsed();
        }
        (self.began, self.cpu) = (Instant::now(), cpu);
    }

    pub(super) fn rests(&self) -> SleepTotals {
        self.rests
    }
}

/// How long a thread must rest that has used its core for `cpu` in the time `wall`, so that one
/// part in [`FOR_OTHERS`] of it all is left to others.
fn owed(wall: Duration, cpu: Duration) -> Duration {
    // (wall + owed − cpu) = (wall + owed) / FOR_OTHERS.
    let own = FOR_OTHERS - 1;
    (cpu * FOR_OTHERS).saturating_sub(wall * own) / own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twentieth_part_is_left_to_others() {
        let ms = Duration::from_millis;
        assert_eq!(owed(ms(100), ms(95)), ms(0));
        assert_eq!(owed(ms(100), ms(10)), ms(0));
        for (wall, cpu) in [(100, 100), (100, 96), (2000, 2000)] {
            let (wall, cpu) = (ms(wall), ms(cpu));
            let rest = owed(wall, cpu);
            let left = (wall + rest - cpu).as_secs_f64();
            let part = left / (wall + rest).as_secs_f64();
            assert!((part - 0.05).abs() < 1e-6, "{wall:?} {cpu:?}: {part}");
        }
    }

    #[test]
    fn a_thread_that_never_slept_is_made_to() {
        while thread_cpu_time().unwrap() < PERIOD {}
        let mut guard = Guard {
            began: Instant::now() - PERIOD,
            cpu: thread_cpu_time().unwrap() - PERIOD,
            rests: SleepTotals::default(),
        };
        let before = Instant::now();
        guard.rest();
        assert_eq!(guard.rests().count, 1);
        assert!(guard.rests().time >= PERIOD / FOR_OTHERS);
        assert!(guard.began > before, "the next period has begun");
        guard.rest();
        assert_eq!(guard.rests().count, 1);
    }

    #[test]
    fn a_thread_that_sleeps_by_itself_is_left_alone() {
        let mut guard = Guard::new().unwrap();
        for _ in 0..30 {
            thread::sleep(Duration::from_millis(10));
            guard.rest();
        }
        assert_eq!(guard.rests(), SleepTotals::default());
    }
}
