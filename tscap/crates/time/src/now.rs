//! Reads the clocks of the system.

use nix::time::{ClockId, clock_gettime};

use super::{MonoNs, RealNs, TaiNs};

impl MonoNs {
    /// Reads CLOCK_MONOTONIC through the vDSO.
    #[inline]
    pub fn now() -> Self {
        Self(now(ClockId::CLOCK_MONOTONIC))
    }
}

impl RealNs {
    /// Reads CLOCK_REALTIME through the vDSO.
    pub fn now() -> Self {
        Self(now(ClockId::CLOCK_REALTIME))
    }
}

impl TaiNs {
    /// Reads CLOCK_TAI through the vDSO.
    #[inline]
    pub fn now() -> Self {
        Self(now(ClockId::CLOCK_TAI))
    }
}

/// Reads a clock of the system, ns.
///
/// # Panics
/// If the kernel does not have the clock.
#[inline]
pub fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every Linux has these clocks");
    u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec()).unwrap_or(0)
}
