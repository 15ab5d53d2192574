//! The counters, and the ways to read them.

use serde::{Deserialize, Serialize};

use tscap_clock::{StampPath, TscPath};

/// A counter by one way to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// The CPU's time-stamp counter, as soon as the CPU likes.
    Tsc,
    /// The same once all before it is done.
    TscOrdered,
    /// CLOCK_MONOTONIC_RAW by the vDSO.
    RawVdso,
    /// The same by a system call.
    RawSyscall,
    /// CLOCK_MONOTONIC by a BPF program's helper.
    Ktime,
    /// CLOCK_TAI by a BPF program's helper.
    Tai,
    /// The time-stamp counter by a perf event in a BPF program.
    TscPerf,
    /// The same by the kernel's kfunc.
    TscKernel,
    /// The same by the kfunc of tscap's module.
    TscModule,
    /// The same by the module's ordered kfunc.
    TscModuleOrdered,
    /// A PTP hardware clock by a system call.
    Ptp,
    /// The High Precision Event Timer, mapped.
    Hpet,
    /// The power-management timer of ACPI, read once.
    AcpiPm,
    /// The same, read until three readings are in order.
    AcpiPmSafe,
}

/// Where its value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Read in this process.
    User,
    /// Read by a BPF program: a checkpoint is a reading of CLOCK_MONOTONIC.
    Program(StampPath),
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Tsc,
        Self::TscOrdered,
        Self::RawVdso,
        Self::RawSyscall,
        Self::Ktime,
        Self::Tai,
        Self::TscPerf,
        Self::TscKernel,
        Self::TscModule,
        Self::TscModuleOrdered,
        Self::Ptp,
        Self::Hpet,
        Self::AcpiPm,
        Self::AcpiPmSafe,
    ];

    /// Its name, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::TscOrdered => "tsc-ordered",
            Self::RawVdso => "raw-vdso",
            Self::RawSyscall => "raw-syscall",
            Self::Ktime => "ktime",
            Self::Tai => "tai",
            Self::TscPerf => "tsc-perf",
            Self::TscKernel => "tsc-kernel",
            Self::TscModule => "tsc-module",
            Self::TscModuleOrdered => "tsc-module-ordered",
            Self::Ptp => "ptp",
            Self::Hpet => "hpet",
            Self::AcpiPm => "acpi-pm",
            Self::AcpiPmSafe => "acpi-pm-safe",
        }
    }

    /// What reads it.
    pub fn way(self) -> &'static str {
        match self {
            Self::Tsc => "RDTSC",
            Self::TscOrdered => "LFENCE, RDTSC",
            Self::RawVdso => "clock_gettime(CLOCK_MONOTONIC_RAW), in the vDSO",
            Self::RawSyscall => "clock_gettime(CLOCK_MONOTONIC_RAW), a system call",
            Self::Ktime => "bpf_ktime_get_ns",
            Self::Tai => "bpf_ktime_get_tai_ns",
            Self::TscPerf => "bpf_perf_event_read",
            Self::TscKernel => "bpf_get_cpu_time_counter",
            Self::TscModule => "tscap_rdtsc",
            Self::TscModuleOrdered => "tscap_rdtsc_ordered",
            Self::Ptp => "clock_gettime of the device, a system call",
            Self::Hpet => "one access to the mapped register",
            Self::AcpiPm => "one access to the port",
            Self::AcpiPmSafe => "three accesses to the port, or more",
        }
    }

    pub(super) fn place(self) -> Place {
        let path = match self {
            Self::Ktime => StampPath::Ktime,
            Self::Tai => StampPath::Tai,
            Self::TscPerf => StampPath::Tsc(TscPath::Perf),
            Self::TscKernel => StampPath::Tsc(TscPath::Kernel),
            Self::TscModule => StampPath::Tsc(TscPath::Module),
            Self::TscModuleOrdered => StampPath::Tsc(TscPath::ModuleOrdered),
            _ => return Place::User,
        };
        Place::Program(path)
    }

    /// The one that the kernel makes of its clock source: by its interface (V-A of the paper).
    pub(super) fn is_by_interface(self) -> bool {
        matches!(
            self,
            Self::RawVdso | Self::RawSyscall | Self::Ktime | Self::Tai
        )
    }

    /// Those that differ in their values, not only in the way to them.
    pub(super) fn is_source(self) -> bool {
        matches!(self, Self::RawVdso | Self::Ptp | Self::Hpet | Self::AcpiPm)
    }
}

/// What is known of a counter before it is watched (Table I).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Facts {
    /// Ticks in a second; `None` for the TSC, which states none.
    pub hertz: Option<f64>,
    pub bits: u32,
}

impl Facts {
    /// A clock of the kernel: nanoseconds.
    pub const NANOSECONDS: Self = Self {
        hertz: Some(1e9),
        bits: 64,
    };
    pub const CYCLES: Self = Self {
        hertz: None,
        bits: 64,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_and_each_is_one() {
        let names: std::collections::BTreeSet<_> = Counter::ALL.map(Counter::name).into();
        assert_eq!(names.len(), Counter::ALL.len());
        for counter in Counter::ALL {
            assert_eq!(serde_json::to_value(counter).unwrap(), counter.name());
        }
    }
}
