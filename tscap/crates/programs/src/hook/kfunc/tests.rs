use super::btf::tests::{KIND, btf, kernel};
use super::*;
use tscap_base::recorded::Recorded;

const VMLINUX: &str = "sys/kernel/btf/vmlinux";

/// A module of this kernel with one function.
fn module(kernel: &[u8], function: &str) -> Vec<u8> {
    let strings = u32::from_ne_bytes(*kernel[20..].first_chunk().unwrap());
    btf(strings as usize, &[(KIND(12), function, 0)])
}

/// A machine whose kernel shows its types.
fn with_types() -> Recorded {
    let machine = Recorded::veth();
    machine.put_bytes(VMLINUX, &kernel("cpu_clock"));
    machine
}

fn says(error: &NoKfunc, what: &str, advice: &str) {
    let text = tscap_base::text::causes::chain(error);
    assert!(text.contains(what), "{text}");
    let said = error.advice(false);
    assert!(said.contains(advice), "{said}");
    // The sources are in no package.
    let said = error.advice(true);
    assert!(!said.contains("make -C"), "{said}");
}

#[test]
fn the_kernels_own_needs_no_module() {
    let machine = Recorded::veth();
    let find = || Kfunc::find(TscPath::Kernel, &machine.files);
    says(&find().unwrap_err(), "shows no types", "DEBUG_INFO_BTF");
    machine.put_bytes(VMLINUX, &kernel("bpf_get_cpu_time"));
    let error = find().unwrap_err();
    says(&error, "no function bpf_get_cpu_time_counter", "module");
    machine.put_bytes(VMLINUX, &kernel("bpf_get_cpu_time_counter"));
    let found = find().unwrap();
    let [call] = found.calls() else {
        panic!("one call: {found:?}")
    };
    assert_eq!((call.btf_id, found.path), (5, TscPath::Kernel));
    assert!(call.module.is_none());
    machine.put_bytes(VMLINUX, b"none of this is BTF");
    says(
        &find().unwrap_err(),
        "/sys/kernel/btf/vmlinux: it doesn't begin",
        "ktime",
    );
}

#[test]
fn a_module_that_is_not_loaded_or_has_no_types() {
    let machine = with_types();
    let find = || Kfunc::find(TscPath::Module, &machine.files).unwrap_err();
    let build = "make -C tscap-ebpf/kmod && sudo insmod";
    says(&find(), "is not loaded", build);
    let packaged = find().advice(true);
    assert!(packaged.contains("the package tscap-dkms"), "{packaged}");
    for (path, only_signed) in [
        (
            "sys/kernel/security/lockdown",
            "none [integrity] confidentiality",
        ),
        ("sys/module/module/parameters/sig_enforce", "Y"),
    ] {
        let machine = with_types();
        machine.put(path, only_signed);
        let error = Kfunc::find(TscPath::Module, &machine.files).unwrap_err();
        says(&error, "is not loaded", "mokutil --import");
        assert_eq!(error.fix(), None);
    }
    machine.put(
        "sys/kernel/security/lockdown",
        "[none] integrity confidentiality",
    );
    machine.put("sys/module/module/parameters/sig_enforce", "N");
    says(&find(), "is not loaded", build);
    machine.put("sys/module/tscap/refcnt", "0");
    says(&find(), "no /sys/kernel/btf/tscap", "pahole");
    let find = |machine: &Recorded| Kfunc::find(TscPath::Module, &machine.files).unwrap_err();
    let error = find(&Recorded::veth());
    says(&error, "shows no types of its own", "DEBUG_INFO_BTF");
    assert_eq!(error.fix(), None);
}

#[test]
fn a_function_is_found_in_the_modules_own_types() {
    let machine = Recorded::veth();
    let id = |function| id_in_module(&machine.files, function);
    let kernel = kernel("cpu_clock");
    machine.put_bytes("sys/kernel/btf/tscap", &module(&kernel, "tscap_rdtsc"));
    says(&id("tscap_rdtsc").unwrap_err(), "shows no types", "module");
    machine.put_bytes(VMLINUX, &kernel);
    assert_eq!(id("tscap_rdtsc").unwrap(), 6);
    let error = id("tscap_rdtsc_ordered").unwrap_err();
    says(
        &error,
        "has no function tscap_rdtsc_ordered",
        "another module",
    );
    machine.put_bytes("sys/kernel/btf/tscap", &kernel[..30]);
    says(
        &id("tscap_rdtsc").unwrap_err(),
        "btf/tscap: it is cut off",
        "ktime",
    );
}

#[test]
fn without_privilege_no_module_is_called() {
    // Not for a program that a group may run.
    says(&NoKfunc::NoPrivilege, "CAP_SYS_ADMIN", "run as root");
}

#[test]
fn interrupts_are_turned_off_by_both_functions_or_none() {
    let machine = Recorded::veth();
    let find = || InterruptKfuncs::find(&machine.files);
    says(&find().unwrap_err(), "shows no types", "");
    machine.put_bytes(VMLINUX, &kernel("bpf_local_irq_save"));
    let error = find().unwrap_err();
    says(&error, "no function bpf_local_irq_restore", "");
    let functions = ["bpf_local_irq_restore", "bpf_local_irq_save"];
    let both = functions.map(|function| (KIND(12), function, 0));
    machine.put_bytes(VMLINUX, &btf(0, &both));
    let found = find().unwrap();
    let calls = found.calls().iter().map(|call| (call.marker, call.btf_id));
    assert!(calls.eq([(IRQ_SAVE_CALL, 2), (IRQ_RESTORE_CALL, 1)]));
}
