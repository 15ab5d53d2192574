//! CLOCK_MONOTONIC_RAW, by both ways that the kernel gives to user space.

use std::mem::MaybeUninit;

use crate::MonoRawNs;

const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_RAW;

/// Reads it as `clock_gettime` does: in the vDSO, without a system call, where the kernel's
/// clock source can be read from user space (`tsc`, `kvm-clock`, `hyperv_clocksource_tsc_page`).
#[inline]
pub fn by_vdso() -> MonoRawNs {
    let mut time = MaybeUninit::uninit();
    // SAFETY: the function writes the one structure that it is given; it can't fail, since
    // every Linux has this clock.
    let time = unsafe {
        libc::clock_gettime(CLOCK, time.as_mut_ptr());
        time.assume_init()
    };
    nanoseconds(time)
}

/// Reads it by a system call, whatever the clock source.
#[inline]
pub fn by_syscall() -> MonoRawNs {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: as in `by_vdso`.
    let time = unsafe {
        libc::syscall(libc::SYS_clock_gettime, CLOCK, time.as_mut_ptr());
        time.assume_init()
    };
    nanoseconds(time)
}

fn nanoseconds(time: libc::timespec) -> MonoRawNs {
    let (seconds, ns) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    MonoRawNs(seconds * 1_000_000_000 + ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_lead_to_one_clock() {
        let readings = [by_vdso(), by_syscall(), by_vdso(), by_syscall()];
        assert!(readings.is_sorted() && readings[0].0 > 0, "{readings:?}");
    }
}
