//! The kernel's clocks, through the vDSO.

use std::mem::MaybeUninit;

use crate::calculation::Witness;

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the function writes the one structure that it is given; it can't fail, since every
    // Linux has these clocks.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    let (seconds, ns) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
    seconds.wrapping_mul(1_000_000_000).wrapping_add(ns)
}

/// Most that coarse clocks lag, by a tick of 10 ms and one that comes late, ns. A program that is
/// interrupted for longer between its reads tries again.
const LAG_NS: u64 = 20_000_000;

/// The counter with both clocks at the latest tick. A tick between the two reads seems to be a
/// clock that was set; [`precise`] then tells.
#[inline]
pub fn coarse() -> Witness {
    let raw = super::read_counter();
    let real_ns = read(libc::CLOCK_REALTIME_COARSE);
    let mono = read(libc::CLOCK_MONOTONIC_COARSE);
    Witness {
        raw,
        real_ns,
        mono_ns: [mono; 2],
        lag_ns: LAG_NS,
    }
}

/// The counter and CLOCK_REALTIME between two readings of CLOCK_MONOTONIC.
pub fn precise() -> Witness {
    let before = read(libc::CLOCK_MONOTONIC);
    let raw = super::read_counter();
    let real_ns = read(libc::CLOCK_REALTIME);
    let after = read(libc::CLOCK_MONOTONIC);
    Witness {
        raw,
        real_ns,
        mono_ns: [before, after],
        lag_ns: 0,
    }
}
