use super::super::btf::tests::{Built, structures};
use super::*;
use tscap_base::recorded::Recorded;

/// A kernel with all of it, but for what `lacks` says.
fn kernel(lacks: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut all = [
        ("kernel_stat", vec![("irqs_sum", 0), ("softirqs", 8)]),
        ("kernel_cpustat", vec![("cpustat", 16)]),
        (
            "",
            vec![
                ("__nmi_count", 0),
                ("apic_timer_irqs", 4),
                ("irq_call_count", 40),
            ],
        ),
    ];
    for (_, members) in &mut all {
        members.retain(|(member, _)| !lacks(member));
    }
    let variables = [
        Built::TypedefOf("irq_cpustat_t", 3),
        Built::Variable("kstat", 1),
        Built::Variable("kernel_cpustat", 2),
        Built::Variable("irq_stat", 4),
    ];
    let ids = (4..).zip(&variables).skip(1);
    let ids = ids.filter(|(_, it)| !lacks(it.name())).map(|(id, _)| id);
    let section = Built::Section(".data..percpu", ids.collect());
    let more: Vec<_> = variables.into_iter().chain([section]).collect();
    structures(&all, &more)
}

fn look_up(kernel: &[u8]) -> Result<KernelCounters, NoCounters> {
    let machine = Recorded::veth();
    machine.put_bytes("sys/kernel/btf/vmlinux", kernel);
    KernelCounters::look_up(&machine.files)
}

fn shown(code: &[bpf_insn]) -> Vec<(u8, u8, u8, i16, i32)> {
    let each = |it: &bpf_insn| (it.code, it.dst_reg(), it.src_reg(), it.off, it.imm);
    code.iter().map(each).collect()
}

#[test]
fn a_counter_is_copied_and_added_up() {
    let found = look_up(&kernel(|_| false)).expect("all of it");
    let code = found.code(KernelCounter::CpuInterrupts.call(), -128);
    let wanted = [
        // r1 = the variable with id 7, of which each CPU has its own; r0 = where this one's is.
        (0x18, 1, 3, 0, 7),
        (0, 0, 0, 0, 0),
        (0x85, 0, 0, 0, 154),
        // 44 bytes of it to the stack, as bpf_probe_read_kernel copies.
        (0xbf, 3, 0, 0, 0),
        (0x07, 3, 0, 0, 0),
        (0xb7, 2, 0, 0, 44),
        (0xbf, 1, 10, 0, 0),
        (0x07, 1, 0, 0, -128),
        (0x85, 0, 0, 0, 113),
        (0xb7, 0, 0, 0, 0),
        // r0 += each of its words.
        (0x61, 1, 10, -124, 0),
        (0x0f, 0, 1, 0, 0),
        (0x61, 1, 10, -128, 0),
        (0x0f, 0, 1, 0, 0),
        (0x61, 1, 10, -88, 0),
        (0x0f, 0, 1, 0, 0),
    ];
    assert_eq!(shown(&code.expect("one of these")), wanted);
    assert!(found.code(4711, -128).is_none());
}

/// What is before the first word is not copied.
#[test]
fn words_of_an_array_are_taken_from_where_it_is() {
    let found = look_up(&kernel(|_| false)).expect("all of it");
    let words = |counter: KernelCounter| found.0[counter as usize].words.clone();
    let softirqs: Vec<_> = words(KernelCounter::OtherSoftirqs);
    let others = [8, 12, 16, 24, 28, 32, 36, 40, 44];
    assert_eq!(softirqs, others.map(|at| (at, 4)));
    assert_eq!(words(KernelCounter::Stolen), [(16 + 7 * 8, 8)]);
    assert_eq!(words(KernelCounter::Accounted).len(), 8);
    let code = found.code(KernelCounter::Stolen.call(), -64).unwrap();
    let code = shown(&code);
    assert_eq!(code[4], (0x07, 3, 0, 0, 72));
    assert_eq!(code[5], (0xb7, 2, 0, 0, 8));
    assert_eq!(code[10], (0x79, 1, 10, -64, 0));
}

#[test]
fn what_the_kernel_lacks_is_named() {
    for (lacking, reported) in [
        ("kstat", "no per-CPU variable kstat"),
        ("irq_stat", "no per-CPU variable irq_stat"),
        ("cpustat", "no kernel_cpustat.cpustat"),
        ("apic_timer_irqs", "no irq_stat.apic_timer_irqs"),
    ] {
        let error = look_up(&kernel(|it| it == lacking)).unwrap_err();
        assert!(error.to_string().contains(reported), "{error}");
    }
    // Not every kernel has each interrupt.
    look_up(&kernel(|it| it == "irq_call_count")).expect("all that it needs");
    let none = KernelCounters::look_up(&Recorded::veth().files);
    assert!(matches!(
        none,
        Err(NoCounters::Types(NoKfunc::NoKernelTypes))
    ));
}

#[test]
fn the_running_kernels_own_are_found() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        tscap_base::skip::skip("this kernel shows no types");
        return;
    };
    let found = look_up(&bytes).expect("all of it");
    for places in &found.0 {
        assert!(places.range().len() <= COUNTER_SCRATCH_BYTES, "{places:?}");
    }
    let interrupts = &found.0[KernelCounter::CpuInterrupts as usize];
    assert!(interrupts.words.len() >= 5, "{interrupts:?}");
}
