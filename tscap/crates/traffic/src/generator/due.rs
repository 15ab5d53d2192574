//! Waiting for a frame to become due.

use std::io;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use tscap_clock::{MonoNs, TscCycles};
use tscap_time::tsc;

/// Shorter periods are waited out by spinning alone.
pub(super) const SLEEPS_FROM_NS: u64 = 1_000_000;
/// A sleep ends this much before the frame is due: waking takes up to some tens
/// of microseconds, more where the CPU saves power, and a call for a native frame
/// must be made early too.
const WAKES_EARLY_NS: u64 = 250_000;

/// Sleeps until shortly before `due`; false if a signal ended it before.
pub(super) fn sleep_until_shortly_before(due: MonoNs) -> io::Result<bool> {
    let wake = due.0.saturating_sub(WAKES_EARLY_NS);
    let seconds = i64::try_from(wake / 1_000_000_000).unwrap_or(i64::MAX);
    let rest = i64::try_from(wake % 1_000_000_000).expect("less than a second");
    let time = TimeSpec::new(seconds, rest);
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    match clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &time) {
        Ok(_) => Ok(true),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Looks at the clock until it is `due`, [`WAKES_EARLY_NS`] at most.
pub(super) fn spin_until(due: MonoNs) {
    while MonoNs::now() < due {
        std::hint::spin_loop();
    }
}

/// Reads the TSC until it is `due`, and returns the last reading.
pub(super) fn spin_until_tsc(due: TscCycles) -> TscCycles {
    loop {
        let now = tsc::read();
        if now >= due {
            return now;
        }
    }
}
