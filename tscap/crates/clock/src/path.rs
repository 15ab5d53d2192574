//! By which way an XDP program reads its clock.

use tscap_common::hook::ClockDomain;

use super::StampSource;

/// A clock and the function that reads it: what really runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampPath {
    /// CLOCK_MONOTONIC by `bpf_ktime_get_ns`.
    Ktime,
    /// CLOCK_TAI by `bpf_ktime_get_tai_ns`.
    Tai,
    /// The CPU's time-stamp counter.
    Tsc(TscPath),
}

/// The ways to the time-stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TscPath {
    /// The kernel's own kfunc, bpf_get_cpu_time_counter; in no released kernel known.
    Kernel,
    /// The kfunc of tscap's kernel module (tscap-ebpf/kmod).
    Module,
    /// The same module's ordered read.
    ModuleOrdered,
    /// A perf event (kernel 6.16).
    Perf,
}

impl TscPath {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Module, Self::ModuleOrdered, Self::Perf];

    /// Name as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Module => "module",
            Self::ModuleOrdered => "module-ordered",
            Self::Perf => "perf",
        }
    }
}

impl StampPath {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ktime,
        Self::Tai,
        Self::Tsc(TscPath::Kernel),
        Self::Tsc(TscPath::Module),
        Self::Tsc(TscPath::ModuleOrdered),
        Self::Tsc(TscPath::Perf),
    ];

    /// The clock.
    pub fn source(self) -> StampSource {
        match self {
            Self::Ktime => StampSource::Ktime,
            Self::Tai => StampSource::Tai,
            Self::Tsc(_) => StampSource::Tsc,
        }
    }

    /// The clock as the program's stamps show it.
    pub fn domain(self) -> ClockDomain {
        match self {
            Self::Ktime => ClockDomain::Monotonic,
            Self::Tai => ClockDomain::Tai,
            Self::Tsc(TscPath::Perf) => ClockDomain::CpuTsc,
            Self::Tsc(_) => ClockDomain::Tsc,
        }
    }

    /// A short name, which tells the ways to one clock apart.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ktime => "ktime",
            Self::Tai => "tai",
            Self::Tsc(TscPath::Kernel) => "tsc-kernel",
            Self::Tsc(TscPath::Module) => "tsc-module",
            Self::Tsc(TscPath::ModuleOrdered) => "tsc-module-ordered",
            Self::Tsc(TscPath::Perf) => "tsc-perf",
        }
    }

    /// The function, as results name it.
    pub fn function(self) -> &'static str {
        match self {
            Self::Ktime => "bpf_ktime_get_ns",
            Self::Tai => "bpf_ktime_get_tai_ns",
            Self::Tsc(TscPath::Kernel) => "bpf_get_cpu_time_counter",
            Self::Tsc(TscPath::Module) => "tscap_rdtsc of the module tscap",
            Self::Tsc(TscPath::ModuleOrdered) => "tscap_rdtsc_ordered of the module tscap",
            Self::Tsc(TscPath::Perf) => "bpf_perf_event_read of msr/tsc/",
        }
    }

    /// The path whose results name `function`.
    pub fn by_function(function: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.function() == function)
    }

    /// Whether programs call a kfunc for it, which takes CAP_SYS_ADMIN to load them.
    pub fn is_by_kfunc(self) -> bool {
        matches!(self, Self::Tsc(path) if path != TscPath::Perf)
    }

    /// Whether the counter read inside is ordered (fenced) against the
    /// instructions around it: the kernel reads its clock source and its `msr`
    /// PMU with `rdtsc_ordered()` (`read_tsc` in arch/x86/kernel/tsc.c,
    /// `msr_read_counter` in arch/x86/events/msr.c), and the proposed
    /// `bpf_get_cpu_time_counter` does too. A read that is not may come some tens
    /// of nanoseconds before the program's first instruction.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Self::Tsc(TscPath::Module))
    }
}

/// How a read of a counter is called: ordered if no instruction before it may run after it.
pub fn read_order(is_ordered: bool) -> &'static str {
    if is_ordered { "ordered" } else { "unordered" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_name_each_path_apart() {
        for path in StampPath::ALL {
            assert_eq!(StampPath::by_function(path.function()), Some(path));
            assert!(path.name().starts_with(path.source().name()), "{path:?}");
        }
        assert_eq!(StampPath::by_function(""), None);
        let unordered = StampPath::ALL.iter().filter(|it| !it.is_ordered());
        assert!(unordered.eq([&StampPath::Tsc(TscPath::Module)]));
        let others = StampPath::ALL.iter().filter(|it| !it.is_by_kfunc());
        let perf = StampPath::Tsc(TscPath::Perf);
        assert!(others.eq([&StampPath::Ktime, &StampPath::Tai, &perf]));
    }
}
