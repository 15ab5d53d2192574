//! What the kernel counts on each CPU, for programs that look at it: sums of members of its
//! per-CPU variables, copied from where this kernel has them.

use std::ops::Range;

use aya_obj::generated::{
    BPF_ADD, BPF_ALU64, BPF_CALL, BPF_DW, BPF_EXIT, BPF_JMP, BPF_LD, BPF_LDX, BPF_MEM, BPF_MOV,
    BPF_PSEUDO_BTF_ID, BPF_W, BPF_X, bpf_func_id, bpf_insn,
};
use tscap_common::config::COUNTER_SCRATCH_BYTES;
use tscap_common::kernel_counter::KernelCounter;

use super::absent::NoKfunc;
use super::btf::Btf;
use super::{KERNEL_TYPES, types, unreadable};
use crate::hook::call::set_r0;
use tscap_base::kernel_files::KernelFiles;
use tscap_network::bpf::program::{Kind, Program, load};

/// `enum`s of indices: of softirqs in include/linux/interrupt.h, of CPU time in
/// include/linux/kernel_stat.h.
const NET_RX_SOFTIRQ: u16 = 3;
const NR_SOFTIRQS: u16 = 10;
const CPUTIME_STEAL: u16 = 7;

/// What a counter is the sum of.
struct Sum {
    variable: &'static str,
    /// Members that it must have: the bytes of a word, and which words of an array.
    needed: &'static [(&'static str, u16, Range<u16>)],
    /// Members of 4 bytes that some kernels do not have.
    more: &'static [&'static str],
}

/// Where Linux has each counter: include/linux/kernel_stat.h, and for x86
/// arch/x86/include/asm/hardirq.h. There the calls of other CPUs contain those for the TLB,
/// and not every kernel has each interrupt.
const fn sum(counter: KernelCounter) -> Sum {
    match counter {
        KernelCounter::DeviceInterrupts => Sum {
            variable: "kstat",
            needed: &[("irqs_sum", 8, 0..1)],
            more: &[],
        },
        KernelCounter::CpuInterrupts => Sum {
            variable: "irq_stat",
            needed: &[("apic_timer_irqs", 4, 0..1)],
            more: &[
                "__nmi_count",
                "irq_spurious_count",
                "x86_platform_ipis",
                "apic_perf_irqs",
                "apic_irq_work_irqs",
                "irq_resched_count",
                "irq_call_count",
                "irq_thermal_count",
                "irq_threshold_count",
                "irq_deferred_error_count",
                "irq_hv_callback_count",
                "irq_hv_reenlightenment_count",
                "hyperv_stimer0_count",
                "kvm_posted_intr_ipis",
                "kvm_posted_intr_wakeup_ipis",
                "kvm_posted_intr_nested_ipis",
            ],
        },
        KernelCounter::OtherSoftirqs => Sum {
            variable: "kstat",
            needed: &[
                ("softirqs", 4, 0..NET_RX_SOFTIRQ),
                ("softirqs", 4, NET_RX_SOFTIRQ + 1..NR_SOFTIRQS),
            ],
            more: &[],
        },
        KernelCounter::Stolen => Sum {
            variable: "kernel_cpustat",
            needed: &[("cpustat", 8, CPUTIME_STEAL..CPUTIME_STEAL + 1)],
            more: &[],
        },
        KernelCounter::Accounted => Sum {
            variable: "kernel_cpustat",
            needed: &[("cpustat", 8, 0..CPUTIME_STEAL + 1)],
            more: &[],
        },
    }
}

/// Why programs can't look at the kernel's counters.
#[derive(Debug, thiserror::Error)]
pub enum NoCounters {
    /// The kernel shows no types, or none that are known here.
    #[error(transparent)]
    Types(#[from] NoKfunc),
    /// They have no such variable.
    #[error("this kernel's types have no per-CPU variable {0}")]
    NoVariable(&'static str),
    /// Programs can't get its address.
    #[error("this kernel does not export {0} to programs (CONFIG_KALLSYMS_ALL)")]
    NotExported(String),
    /// The kernel refuses something else.
    #[error("this kernel lets no program read {variable}: {log}")]
    Refused {
        /// The variable.
        variable: &'static str,
        /// What it says last.
        log: String,
    },
}

/// Where this kernel has each of [`KernelCounter::ALL`], in that order.
#[derive(Clone, Debug)]
pub struct KernelCounters([Places; KernelCounter::ALL.len()]);

/// Where a sum is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    /// The variable's id in the BTF of the kernel.
    variable: u32,
    /// Offsets in it, bytes, and the width of each.
    words: Vec<(u16, u16)>,
}

impl KernelCounters {
    /// Looks for all of them, and has the kernel load a program that reads them.
    ///
    /// # Errors
    /// When programs can't read one of them, with the reason.
    pub fn find(files: &KernelFiles) -> Result<Self, NoCounters> {
        let found = Self::look_up(files)?;
        let mut not_exported = Vec::new();
        for (counter, places) in KernelCounter::ALL.into_iter().zip(&found.0) {
            let variable = sum(counter).variable;
            match places.try_out() {
                Ok(()) => {}
                Err(Refusal::Address) if not_exported.contains(&variable) => {}
                Err(Refusal::Address) => not_exported.push(variable),
                Err(Refusal::Other(log)) => return Err(NoCounters::Refused { variable, log }),
            }
        }
        if not_exported.is_empty() {
            Ok(found)
        } else {
            Err(NoCounters::NotExported(not_exported.join(", ")))
        }
    }

    fn look_up(files: &KernelFiles) -> Result<Self, NoCounters> {
        let bytes = types(files, KERNEL_TYPES)?.ok_or(NoKfunc::NoKernelTypes)?;
        let types = Btf::parse(&bytes).map_err(unreadable(KERNEL_TYPES))?;
        let places = KernelCounter::ALL.map(|counter| Places::of(&types, &sum(counter)));
        let places: Vec<_> = places.into_iter().collect::<Result<_, _>>()?;
        Ok(Self(places.try_into().expect("one for each counter")))
    }

    /// What stands in the place of the call with this marker, if it is one of these. It may
    /// use the stack from `scratch` on.
    pub(crate) fn code(&self, marker: u32, scratch: i16) -> Option<Vec<bpf_insn>> {
        let counter = counter_of(marker)?;
        Some(self.0[counter as usize].code(scratch))
    }
}

/// The counter with this marker.
pub(crate) fn counter_of(marker: u32) -> Option<KernelCounter> {
    let mut all = KernelCounter::ALL.into_iter();
    all.find(|it| it.call() == marker)
}

/// Why the kernel loads no program that reads a variable.
enum Refusal {
    /// It has the types, but not the address.
    Address,
    /// What the verifier says last.
    Other(String),
}

impl Places {
    fn of(types: &Btf<'_>, sum: &Sum) -> Result<Self, NoCounters> {
        let variable = sum.variable;
        let needed = sum.needed.iter().map(|(member, ..)| *member);
        let names: Vec<_> = needed.chain(sum.more.iter().copied()).collect();
        let found = types.per_cpu(variable, &names);
        let found = found.map_err(unreadable(KERNEL_TYPES))?;
        let found = found.ok_or(NoCounters::NoVariable(variable))?;
        let mut starts = found.members.into_iter().map(|member| {
            let in_bytes = member.filter(|it| it.bits == 0 && it.bit.is_multiple_of(8))?;
            i16::try_from(in_bytes.bit / 8).ok().map(i16::cast_unsigned)
        });
        let mut words = Vec::new();
        for ((member, width, which), start) in sum.needed.iter().zip(starts.by_ref()) {
            let structure = variable;
            let start = start.ok_or(NoKfunc::NoMember { structure, member })?;
            words.extend(which.clone().map(|word| (start + word * width, *width)));
        }
        words.extend(starts.flatten().map(|start| (start, 4)));
        let places = Self {
            variable: found.id,
            words,
        };
        if places.range().len() <= COUNTER_SCRATCH_BYTES {
            Ok(places)
        } else {
            Err(NoCounters::NoVariable(variable))
        }
    }

    /// From the first byte of it to the last one.
    fn range(&self) -> Range<usize> {
        let starts = self.words.iter().map(|(at, _)| usize::from(*at));
        let ends = self.words.iter().map(|(at, width)| usize::from(at + width));
        starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
    }

    /// Copies what all of the sum lies in to the stack, and adds it up. A pointer to the
    /// variable would do for structures with a name only, before Linux 6.9.
    fn code(&self, scratch: i16) -> Vec<bpf_insn> {
        let range = self.range();
        let mut code = self.address();
        code.extend([
            moved(3, 0),
            added_constant(3, range.start as i32),
            constant(2, range.len() as i32),
            moved(1, 10),
            added_constant(1, scratch.into()),
            helper(bpf_func_id::BPF_FUNC_probe_read_kernel),
            constant(0, 0),
        ]);
        for (at, width) in &self.words {
            let from = scratch + (usize::from(*at) - range.start) as i16;
            code.extend([loaded(1, *width, from), added(0, 1)]);
        }
        code
    }

    /// r0 = where the variable of this CPU is.
    fn address(&self) -> Vec<bpf_insn> {
        let mut low = constant(1, self.variable.cast_signed());
        low.code = (BPF_LD | BPF_DW) as u8;
        low.set_src_reg(BPF_PSEUDO_BTF_ID as u8);
        let mut high = set_r0(0);
        high.code = 0;
        vec![low, high, helper(bpf_func_id::BPF_FUNC_this_cpu_ptr)]
    }

    /// Whether the kernel takes a program that reads it.
    fn try_out(&self) -> Result<(), Refusal> {
        let mut code = self.code(-(COUNTER_SCRATCH_BYTES as i16));
        let mut exit = set_r0(0);
        exit.code = (BPF_JMP | BPF_EXIT) as u8;
        code.extend([constant(0, 0), exit]);
        let program = Program {
            name: "tscap_counter",
            license: c"GPL",
            code: &code,
            kind: Kind::XDP,
            module: None,
            functions: None,
            entry_of: None,
        };
        load(&program).map(drop).map_err(|(error, log)| {
            if log.contains("failed to find the address for kernel symbol") {
                return Refusal::Address;
            }
            let last = log.lines().rfind(|line| !line.starts_with("processed "));
            Refusal::Other(last.map_or_else(|| error.to_string(), str::to_owned))
        })
    }
}

/// `to` = `value`.
fn constant(to: u8, value: i32) -> bpf_insn {
    let mut it = set_r0(value);
    it.set_dst_reg(to);
    it
}

/// `to` = `from`.
fn moved(to: u8, from: u8) -> bpf_insn {
    let mut it = constant(to, 0);
    it.code = (BPF_ALU64 | BPF_MOV | BPF_X) as u8;
    it.set_src_reg(from);
    it
}

/// `to` += `value`.
fn added_constant(to: u8, value: i32) -> bpf_insn {
    let mut it = constant(to, value);
    it.code = (BPF_ALU64 | BPF_ADD) as u8;
    it
}

/// `to` += `from`.
fn added(to: u8, from: u8) -> bpf_insn {
    let mut it = moved(to, from);
    it.code = (BPF_ALU64 | BPF_ADD | BPF_X) as u8;
    it
}

/// `to` = so many bytes of the stack, 4 or 8.
fn loaded(to: u8, width: u16, from: i16) -> bpf_insn {
    let mut it = moved(to, 10);
    let size = if width == 8 { BPF_DW } else { BPF_W };
    it.code = (BPF_LDX | BPF_MEM | size) as u8;
    it.off = from;
    it
}

fn helper(number: bpf_func_id) -> bpf_insn {
    let mut it = set_r0(number as i32);
    it.code = (BPF_JMP | BPF_CALL) as u8;
    it
}

#[cfg(test)]
mod tests;
