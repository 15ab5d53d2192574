//! The counter of the CPUs: the TSC of x86-64, the virtual count of arm64.

use crate::TscCycles;
use tscap_arch::{CLOCK_SOURCE, COUNTER};
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read_if_there};

/// Reads the counter once everything before has been done. What follows may begin earlier,
/// unless it is a reading of a kernel clock, which orders itself in the same way.
#[inline]
pub fn read() -> TscCycles {
    TscCycles(tscap_arch::read_in_order())
}

/// Reads the counter as soon as the CPU likes, maybe before what comes earlier in
/// the program: what our module's plain kfunc does.
#[inline]
pub fn read_unordered() -> TscCycles {
    TscCycles(tscap_arch::read_unordered())
}

/// Why the counter can't be trusted as a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It may change its rate or stop with the CPU's power state.
    #[error("the {COUNTER} of this CPU is not invariant (CPUID 0x80000007, EDX bit 8)")]
    NotInvariant,
    /// The kernel has found it unstable.
    #[error("the kernel does not use the {COUNTER}: it found it unstable or unsynchronised")]
    Unstable,
}

/// Whether the counter runs at one rate on all CPUs at all times.
pub fn check() -> Result<(), Untrusted> {
    if !tscap_arch::has_constant_rate() {
        return Err(Untrusted::NotInvariant);
    }
    if !is_offered(&KernelFiles::live()).unwrap_or(false) {
        return Err(Untrusted::Unstable);
    }
    Ok(())
}

/// Whether the kernel offers the counter as a clock source: it takes an unstable one
/// off its list (`mark_tsc_unstable`, arch/x86/kernel/tsc.c).
pub fn is_offered(files: &KernelFiles) -> Result<bool, KernelFileError> {
    let list = "devices/system/clocksource/clocksource0/available_clocksource";
    let list = read_if_there(&files.sys(list))?.unwrap_or_default();
    Ok(list.split_whitespace().any(|it| it == CLOCK_SOURCE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn an_unstable_counter_is_off_the_kernels_list() {
        let machine = Recorded::veth();
        assert!(!is_offered(&machine.files).unwrap());
        let path = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        let both = format!("{CLOCK_SOURCE} kvm-clock");
        for (list, offered) in [(&*both, true), ("hpet acpi_pm", false)] {
            machine.put(path, list);
            assert_eq!(is_offered(&machine.files).unwrap(), offered, "{list}");
        }
    }

    #[test]
    fn it_counts_up() {
        let first = read();
        assert!(read() >= first && read_unordered() >= first);
    }
}
