//! What the kernel counts on each CPU, and the programs of `tscap compare` look at. Each is the
//! sum of members of a per-CPU variable of the kernel, whose places differ from kernel to
//! kernel: user space looks them up, and puts code in the place of a call.

use crate::config::COUNTER_CALL;

/// A sum of counters of the CPU that the program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelCounter {
    /// Interrupts that have a line of their own, those of devices (`kstat_incr_irqs_this_cpu`,
    /// kernel/irq/internals.h).
    DeviceInterrupts,
    /// Interrupts that the CPU's own parts and other CPUs make, and NMIs
    /// (`arch_irq_stat_cpu`, arch/x86/kernel/irq.c).
    CpuInterrupts,
    /// Softirqs of any other kind than that which receives frames (`handle_softirqs`,
    /// kernel/softirq.c).
    OtherSoftirqs,
    /// Time that the host of a virtual machine took, ns; brought up to date by the tick
    /// (`steal_account_process_time`, kernel/sched/cputime.c).
    Stolen,
    /// Time that is accounted for, ns: each tick adds to it (`account_process_tick`).
    Accounted,
}

impl KernelCounter {
    /// All of them, by their numbers.
    pub const ALL: [Self; 5] = [
        Self::DeviceInterrupts,
        Self::CpuInterrupts,
        Self::OtherSoftirqs,
        Self::Stolen,
        Self::Accounted,
    ];

    /// Number of the call in whose place its code is put.
    pub const fn call(self) -> u32 {
        COUNTER_CALL + self as u32
    }
}

const _: () = {
    let mut number = 0;
    while number < KernelCounter::ALL.len() {
        assert!(KernelCounter::ALL[number] as usize == number);
        number += 1;
    }
};
