//! The time-stamp counter of x86-64.

use crate::TscCycles;
use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read_if_there};

/// Reads the counter once everything before has been done (Intel SDM vol. 2,
/// RDTSC: LFENCE before it). What follows may begin earlier, unless it is a
/// reading of a kernel clock, which orders itself in the same way
/// (`rdtsc_ordered`, arch/x86/include/asm/tsc.h).
#[inline]
pub fn read() -> TscCycles {
    // SAFETY: every x86-64 CPU has LFENCE (SSE2) and RDTSC; Linux lets user
    // space read the counter unless a process has forbidden it to itself.
    TscCycles(unsafe {
        _mm_lfence();
        _rdtsc()
    })
}

/// Reads the counter as soon as the CPU likes, maybe before what comes earlier in
/// the program: what our module's plain kfunc does.
#[inline]
pub fn read_unordered() -> TscCycles {
    // SAFETY: as in `read`.
    TscCycles(unsafe { _rdtsc() })
}

/// Why the counter can't be trusted as a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It may change its rate or stop with the CPU's power state.
    #[error("the TSC of this CPU is not invariant (CPUID 0x80000007, EDX bit 8)")]
    NotInvariant,
    /// The kernel has found it unstable.
    #[error("the kernel does not use the TSC: it found it unstable or unsynchronised")]
    Unstable,
}

/// Whether the counter runs at one rate on all CPUs at all times.
pub fn check() -> Result<(), Untrusted> {
    if !is_invariant() {
        return Err(Untrusted::NotInvariant);
    }
    if !is_offered(&KernelFiles::live()).unwrap_or(false) {
        return Err(Untrusted::Unstable);
    }
    Ok(())
}

/// "Invariant TSC" (Intel SDM vol. 3, 18.17.1; AMD APM vol. 3, Fn8000_0007).
fn is_invariant() -> bool {
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}

/// Whether the kernel offers the TSC as a clock source: it takes an unstable one
/// off its list (`mark_tsc_unstable`, arch/x86/kernel/tsc.c).
pub fn is_offered(files: &KernelFiles) -> Result<bool, KernelFileError> {
    let list = "devices/system/clocksource/clocksource0/available_clocksource";
    let list = read_if_there(&files.sys(list))?.unwrap_or_default();
    Ok(list.split_whitespace().any(|it| it == "tsc"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn an_unstable_tsc_is_off_the_kernels_list() {
        let machine = Recorded::veth();
        assert!(!is_offered(&machine.files).unwrap());
        let path = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        for (list, offered) in [("tsc kvm-clock", true), ("hpet acpi_pm", false)] {
            machine.put(path, list);
            assert_eq!(is_offered(&machine.files).unwrap(), offered, "{list}");
        }
    }

    #[test]
    fn it_counts_up() {
        let first = read();
        assert!(read() > first);
        let unordered = read_unordered();
        assert!(unordered > first && read() > unordered);
    }
}
