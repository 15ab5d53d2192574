//! x86-64.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, _MM_HINT_T0, _mm_lfence, _mm_prefetch, _rdtsc};
use std::io;
use std::marker::PhantomData;

/// The counter's name: the time-stamp counter.
pub const COUNTER: &str = "TSC";

/// The kernel's clock source that is the counter.
pub const CLOCK_SOURCE: &str = "tsc";

/// The counter as VMClock numbers it (`VMCLOCK_COUNTER_*`, include/uapi/linux/vmclock-abi.h).
pub const VMCLOCK_COUNTER: u8 = 1;

/// The field of /proc/cpuinfo with what a CPU can do (arch/x86/kernel/cpu/proc.c).
pub const FEATURES_FIELD: &str = "flags";

/// The features in it without which the counter has no constant rate, or stops.
pub const CONSTANT_FEATURES: &[&str] = &["constant_tsc", "nonstop_tsc"];

/// Whether other CPUs see the loads of one, and its stores, in the order of its program without
/// a barrier (Intel SDM vol. 3, 10.2.2; AMD APM vol. 2, 7.2).
pub const KEEPS_ORDER: bool = true;

/// System calls that newer ones have replaced, and that C libraries still make.
#[rustfmt::skip]
pub const LEGACY_SYSTEM_CALLS: &[libc::c_long] = &[
    libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink,
    libc::SYS_rename, libc::SYS_link, libc::SYS_unlink, libc::SYS_poll, libc::SYS_time,
];

/// Reads the counter once everything before has been done (Intel SDM vol. 2, RDTSC: LFENCE
/// before it). What follows may begin earlier, unless it is a reading of a kernel clock, which
/// orders itself in the same way (`rdtsc_ordered`, arch/x86/include/asm/tsc.h).
#[inline]
pub fn read_in_order() -> u64 {
    // SAFETY: every x86-64 CPU has LFENCE (SSE2) and RDTSC; Linux lets user space read the
    // counter unless a process has forbidden it to itself.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Reads the counter as soon as the CPU likes, maybe before what comes earlier in the program.
#[inline]
pub fn read_unordered() -> u64 {
    // SAFETY: as in `read_in_order`.
    unsafe { _rdtsc() }
}

/// Whether the counter has one rate at all times: "Invariant TSC" (Intel SDM vol. 3, 18.17.1;
/// AMD APM vol. 3, Fn8000_0007).
pub fn has_constant_rate() -> bool {
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}

/// Asks for the cache line at an address, which may be any: a hint.
#[inline]
pub fn prefetch(at: *const u8) {
    // SAFETY: SSE, which every x86-64 has; a prefetch reads nothing and never faults
    // (Intel SDM 2B, PREFETCHh), whatever the address is.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// I/O ports, for the thread that opened them: the kernel lets no other one use them.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    count: u16,
    of_this_thread: PhantomData<*const ()>,
}

impl Ports {
    /// Asks for `count` ports from `first` on, which are only read.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_RAWIO, or if the kernel is locked down.
    pub fn open(first: u16, count: u16) -> io::Result<Self> {
        // SAFETY: takes no pointers; nothing is written to the ports by this type.
        if unsafe { libc::ioperm(first.into(), count.into(), 1) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            first,
            count,
            of_this_thread: PhantomData,
        })
    }

    /// Reads 32 bits at the first of them, of at least four: one access.
    #[inline]
    pub fn read_u32(&self) -> u32 {
        assert!(self.count >= 4, "only {} ports are open", self.count);
        let value: u32;
        // SAFETY: `open` was given the ports, for this thread, which the type does not leave.
        unsafe {
            asm!("in eax, dx", in("dx") self.first, out("eax") value,
                 options(nomem, nostack, preserves_flags));
        }
        value
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // SAFETY: takes no pointers; gives back what `open` asked for.
        let _ = unsafe { libc::ioperm(self.first.into(), self.count.into(), 0) };
    }
}
