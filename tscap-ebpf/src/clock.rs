//! The clocks that programs stamp with.

use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_ktime_get_tai_ns};
use tscap_common::hook::ClockDomain;

use crate::{kfunc, tsc};

/// A clock, and the one way to read it that the kernel gives.
pub trait Clock {
    /// The clock.
    const DOMAIN: ClockDomain;

    /// A stamp in the clock's unit; `None` if it could not be read.
    fn read() -> Option<u64>;
}

/// CLOCK_MONOTONIC, the kernel's fast accessor.
pub struct Ktime;

/// CLOCK_TAI, kernel 6.1 and later.
pub struct Tai;

/// The TSC by the perf event of this CPU, kernel 6.16 and later.
pub struct TscPerf;

/// The TSC by a kfunc.
pub struct TscKfunc;

impl Clock for Ktime {
    const DOMAIN: ClockDomain = ClockDomain::Monotonic;

    #[inline(always)]
    fn read() -> Option<u64> {
        Some(unsafe { bpf_ktime_get_ns() })
    }
}

impl Clock for Tai {
    const DOMAIN: ClockDomain = ClockDomain::Tai;

    #[inline(always)]
    fn read() -> Option<u64> {
        Some(unsafe { bpf_ktime_get_tai_ns() })
    }
}

impl Clock for TscPerf {
    const DOMAIN: ClockDomain = ClockDomain::CpuTsc;

    #[inline(always)]
    fn read() -> Option<u64> {
        tsc::checked(tsc::read())
    }
}

impl Clock for TscKfunc {
    const DOMAIN: ClockDomain = ClockDomain::Tsc;

    #[inline(always)]
    fn read() -> Option<u64> {
        Some(kfunc::read())
    }
}
