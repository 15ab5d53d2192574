//! The time-stamp counter of x86-64.

use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};
use std::fs;
use std::path::Path;

use crate::clock::TscCycles;

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
    if !kernel_offers_tsc(Path::new("/sys")) {
        return Err(Untrusted::Unstable);
    }
    Ok(())
}

/// "Invariant TSC" (Intel SDM vol. 3, 18.17.1; AMD APM vol. 3, Fn8000_0007).
fn is_invariant() -> bool {
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}

/// The kernel takes an unstable TSC off its list of clock sources
/// (`mark_tsc_unstable`, arch/x86/kernel/tsc.c).
fn kernel_offers_tsc(sys: &Path) -> bool {
    let list = "devices/system/clocksource/clocksource0/available_clocksource";
    fs::read_to_string(sys.join(list))
        .is_ok_and(|list| list.split_whitespace().any(|it| it == "tsc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unstable_tsc_is_off_the_kernels_list() {
        let sys = tempfile::tempdir().unwrap();
        assert!(!kernel_offers_tsc(sys.path()));
        let folder = sys.path().join("devices/system/clocksource/clocksource0");
        fs::create_dir_all(&folder).unwrap();
        for (list, offered) in [("tsc kvm-clock\n", true), ("hpet acpi_pm\n", false)] {
            fs::write(folder.join("available_clocksource"), list).unwrap();
            assert_eq!(kernel_offers_tsc(sys.path()), offered, "{list}");
        }
    }

    #[test]
    fn it_counts_up() {
        let first = read();
        assert!(read() > first);
    }
}
