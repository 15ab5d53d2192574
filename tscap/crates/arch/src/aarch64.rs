//! arm64, which Linux and Rust name aarch64.

use std::arch::asm;
use std::io;

/// The counter's name: the virtual count of the generic timer.
pub const COUNTER: &str = "CNTVCT";

/// The kernel's clock source that is the counter (drivers/clocksource/arm_arch_timer.c).
pub const CLOCK_SOURCE: &str = "arch_sys_counter";

/// The counter as VMClock numbers it (`VMCLOCK_COUNTER_*`, include/uapi/linux/vmclock-abi.h).
pub const VMCLOCK_COUNTER: u8 = 0;

/// The field of /proc/cpuinfo with what a CPU can do (arch/arm64/kernel/cpuinfo.c).
pub const FEATURES_FIELD: &str = "Features";

/// The features in it without which the counter has no constant rate, or stops: none, each
/// counter has it (see [`has_constant_rate`]).
pub const CONSTANT_FEATURES: &[&str] = &[];

/// Whether other CPUs see the loads of one, and its stores, in the order of its program without
/// a barrier: they do not (Arm ARM, B2.3).
pub const KEEPS_ORDER: bool = false;

/// System calls that newer ones have replaced, and that C libraries still make: arm64 came
/// after them (include/uapi/asm-generic/unistd.h).
pub const LEGACY_SYSTEM_CALLS: &[libc::c_long] = &[];

/// Reads the counter once everything before has been done (Arm ARM, D12.2.2: ISB before it).
/// What follows may begin earlier, unless it is a reading of a kernel clock, which orders itself
/// in the same way (`__arch_get_hw_counter`, arch/arm64/include/asm/vdso/gettimeofday.h).
#[inline]
pub fn read_in_order() -> u64 {
    let value: u64;
    // SAFETY: every CPU has the counter; Linux lets user space read it (`arch_counter_set_user_
    // access`, drivers/clocksource/arm_arch_timer.c), or reads it for it where an erratum
    // forbids that. It clobbers no flags.
    unsafe {
        asm!("isb", "mrs {value}, cntvct_el0", value = out(reg) value,
             options(nostack, preserves_flags));
    }
    value
}

/// Reads the counter as soon as the CPU likes, maybe before what comes earlier in the program.
#[inline]
pub fn read_unordered() -> u64 {
    let value: u64;
    // SAFETY: as in `read_in_order`.
    unsafe {
        asm!("mrs {value}, cntvct_el0", value = out(reg) value,
             options(nomem, nostack, preserves_flags));
    }
    value
}

/// Whether the counter has one rate at all times: the architecture says so of each (Arm ARM,
/// D12.1.1), also while CPUs sleep.
pub fn has_constant_rate() -> bool {
    true
}

/// Asks for the cache line at an address, which may be any: a hint.
#[inline]
pub fn prefetch(at: *const u8) {
    // SAFETY: a prefetch reads nothing and never faults (Arm ARM, C6.2, PRFM), whatever the
    // address is.
    unsafe {
        asm!("prfm pldl1keep, [{at}]", at = in(reg) at,
             options(nostack, preserves_flags, readonly));
    }
}

/// I/O ports, which this architecture has none of: there is no value of this type.
#[derive(Debug)]
pub enum Ports {}

impl Ports {
    /// Says that there are none.
    ///
    /// # Errors
    /// Always `Unsupported`.
    pub fn open(_first: u16, _count: u16) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "arm64 has no I/O ports",
        ))
    }

    /// Of no ports.
    #[inline]
    pub fn read_u32(&self) -> u32 {
        match *self {}
    }
}
