//! The kernel's own view of its clock, and word of when the clock is set.
//! Nothing here changes the clock.

use std::{
    io, mem,
    os::fd::{AsFd, BorrowedFd},
};

use nix::{
    errno::Errno,
    sys::{
        time::TimeSpec,
        timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    },
    unistd,
};

/// Last second that a timer can be set to: `KTIME_SEC_MAX`, in the year 2262
/// (`linux/ktime.h`). The clock itself cannot be set that late.
const NEVER_S: i64 = i64::MAX / 1_000_000_000;

/// A leap second to come or in progress (`TIME_*`, `linux/timex.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// None is announced.
    None,
    /// One is inserted at the end of this UTC day (`TIME_INS`).
    InsertToday,
    /// One is left out at the end of this UTC day (`TIME_DEL`).
    DeleteToday,
    /// It is being inserted right now: the clock repeats a second (`TIME_OOP`).
    InProgress,
    /// It is over, but its announcement still stands (`TIME_WAIT`).
    Over,
}

/// What `adjtimex` tells about CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// Some daemon keeps the clock in step with UTC. If not, no bound below
    /// means anything.
    pub synchronised: bool,
    /// `maxerror`: most that the clock can be off UTC, in ns (the kernel counts
    /// µs), as told by the daemon and grown by 500 ppm since. At most 16 s.
    pub max_error_ns: u64,
    /// `esterror`: how much the daemon guesses it is off, in ns (kernel: µs).
    pub est_error_ns: u64,
    /// TAI less UTC in s; 0 if nobody has set it.
    pub tai_offset_s: i32,
    /// Correction of the clock's rate in force, in parts per 10⁹, rounded.
    pub frequency_ppb: i64,
    /// The same by the length of its ticks, which chrony uses for what is faster, in
    /// parts per 10⁹: a tick of 10 ms is told in µs (`USER_TICK_USEC`,
    /// linux/jiffies.h).
    pub tick_ppb: i64,
    /// Leap second announced.
    pub leap: Leap,
}

/// The kernel did not tell about its clock.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the state of the kernel's clock by adjtimex")]
pub struct KernelClockError(#[source] io::Error);

impl KernelClock {
    /// Reads the state; needs no privilege.
    ///
    /// # Errors
    /// If the system call is not permitted (by a seccomp filter).
    pub fn read() -> Result<Self, KernelClockError> {
        // SAFETY: timex is plain integers; all zero means "change nothing".
        let mut timex: libc::timex = unsafe { mem::zeroed() };
        // SAFETY: the kernel reads and writes this one structure.
        let state = unsafe { libc::adjtimex(&mut timex) };
        if state < 0 {
            return Err(KernelClockError(io::Error::last_os_error()));
        }
        Ok(Self::from_timex(state, &timex))
    }

    /// Greatest error against UTC, ns; `None` while nothing bounds it.
    pub fn utc_bound_ns(&self) -> Option<u64> {
        self.synchronised.then_some(self.max_error_ns)
    }

    fn from_timex(state: i32, timex: &libc::timex) -> Self {
        let micros = |value: i64| u64::try_from(value).unwrap_or(0) * 1000;
        Self {
            synchronised: timex.status & libc::STA_UNSYNC == 0 && state != libc::TIME_ERROR,
            max_error_ns: micros(timex.maxerror),
            est_error_ns: micros(timex.esterror),
            tai_offset_s: timex.tai,
            // Parts per million with 16 bits behind the point.
            frequency_ppb: (timex.freq * 1000 + (1 << 15)) >> 16,
            tick_ppb: (timex.tick - 10_000) * 100_000,
            leap: match state {
                libc::TIME_INS => Leap::InsertToday,
                libc::TIME_DEL => Leap::DeleteToday,
                libc::TIME_OOP => Leap::InProgress,
                libc::TIME_WAIT => Leap::Over,
                _ => Leap::None,
            },
        }
    }
}

/// Tells when CLOCK_REALTIME was set (stepped). Its descriptor becomes readable
/// then, and stays so until [`ClockSetWatch::was_set`]; it is non-blocking, so that
/// an executor can wait for it. Slewing is not told: the clock stays continuous.
#[derive(Debug)]
pub struct ClockSetWatch {
    timer: TimerFd,
}

impl ClockSetWatch {
    /// Starts to watch: every step from now on is told.
    ///
    /// # Errors
    /// If the kernel has no timer or descriptor left.
    pub fn new() -> io::Result<Self> {
        let timer = TimerFd::new(
            ClockId::CLOCK_REALTIME,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        timer.set(
            Expiration::OneShot(TimeSpec::new(NEVER_S, 0)),
            TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET,
        )?;
        Ok(Self { timer })
    }

    /// Whether the clock was set since the last call (or since `new`). Several
    /// steps in between are told once, and afterwards the descriptor is not
    /// readable. There is nothing to re-arm: the kernel's list of timers to
    /// cancel keeps this one until it is armed without the flag or closed
    /// (`timerfd_clock_was_set`, fs/timerfd.c).
    ///
    /// # Errors
    /// If the descriptor cannot be read.
    pub fn was_set(&self) -> io::Result<bool> {
        loop {
            match unistd::read(&self.timer, &mut [0; 8]) {
                Err(Errno::ECANCELED) => return Ok(true),
                Err(Errno::EAGAIN) => return Ok(false),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
                // The timer ran out, so the clock was set to the end of time.
                Ok(_) => return Ok(true),
            }
        }
    }
}

impl AsFd for ClockSetWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state of the kernel's clock with these values and no flags.
    fn timex(maxerror: i64, freq: i64) -> libc::timex {
        // SAFETY: timex is plain integers.
        let mut timex: libc::timex = unsafe { mem::zeroed() };
        timex.maxerror = maxerror;
        timex.esterror = 7;
        timex.freq = freq;
        timex.tick = 9_999;
        timex.tai = 37;
        timex
    }

    #[test]
    fn units_are_converted() {
        let clock = KernelClock::from_timex(libc::TIME_INS, &timex(250_000, -10 << 16));
        let expected = KernelClock {
            synchronised: true,
            max_error_ns: 250_000_000,
            est_error_ns: 7_000,
            tai_offset_s: 37,
            frequency_ppb: -10_000,
            tick_ppb: -100_000,
            leap: Leap::InsertToday,
        };
        assert_eq!(clock, expected);
        let small = KernelClock::from_timex(libc::TIME_OK, &timex(0, 66));
        assert_eq!((small.frequency_ppb, small.leap), (1, Leap::None));
    }

    #[test]
    fn either_sign_of_trouble_means_not_synchronised() {
        let mut unsync = timex(0, 0);
        unsync.status = libc::STA_UNSYNC;
        assert!(!KernelClock::from_timex(libc::TIME_OK, &unsync).synchronised);
        assert!(!KernelClock::from_timex(libc::TIME_ERROR, &timex(0, 0)).synchronised);
    }

    #[test]
    fn the_kernel_answers() {
        let clock = KernelClock::read().expect("adjtimex only reads");
        assert!(clock.max_error_ns <= 16_000_000_000, "{clock:?}");
    }

    #[test]
    fn an_untouched_clock_was_not_set() {
        let watch = ClockSetWatch::new().expect("a timer");
        assert!(!watch.was_set().expect("readable"));
        assert!(!watch.was_set().expect("readable"));
    }
}
