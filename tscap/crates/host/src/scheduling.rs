//! Before whom a thread runs (sched(7)).

use std::io;
use std::ops::RangeInclusive;

/// The real-time priorities of SCHED_FIFO.
pub const PRIORITIES: RangeInclusive<u32> = 1..=99;

/// Has this thread run before every thread of the normal policy, and before those of lower
/// real-time priorities. What it starts is of the normal policy again.
///
/// # Errors
/// Of the kind `PermissionDenied` without CAP_SYS_NICE and a high enough RLIMIT_RTPRIO.
pub fn run_in_real_time(priority: u32) -> io::Result<()> {
    let priority = libc::sched_param {
        sched_priority: priority.cast_signed(),
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a whole sched_param, which the kernel only reads.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
