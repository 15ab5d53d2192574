//! Our kernel module.

use crate::agent::MODULE;
use crate::machine::{Processor, Rig};

/// With types in the kernel, by which programs find them, and goes again.
pub fn loads_and_has_its_kfuncs(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    guest.must(&["insmod", MODULE]);
    let types = guest.read("/sys/kernel/btf/tscap");
    for kfunc in [&b"\0tscap_rdtsc\0"[..], b"\0tscap_rdtsc_ordered\0"] {
        assert!(types.windows(kfunc.len()).any(|part| part == kfunc));
    }
    guest.must(&["rmmod", "tscap"]);
    assert!(!guest.must(&["lsmod"]).contains("tscap"));
    // Nothing to complain about but that it is not Debian's.
    let log = guest.must(&["dmesg"]);
    let mut said = log.lines().filter(|line| line.contains("tscap"));
    assert!(said.all(|line| line.contains("taint")), "{log}");
}

pub fn refuses_a_tsc_of_varying_rate(rig: &Rig) {
    let machine = rig.boot_on(Processor::VaryingTsc, &[]);
    let guest = &machine.guest;
    let refused = guest.run(&["insmod", MODULE]);
    assert_ne!(refused.status.code(), Some(0));
    let why = "tscap: the TSC of this CPU has no constant rate";
    let log = guest.must(&["dmesg"]);
    assert!(log.contains(why), "{}\n{log}", refused.stderr);
    assert!(!guest.must(&["lsmod"]).contains("tscap"));
}
