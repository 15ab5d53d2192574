//! Interrupts off around a stamp, which programs can do since Linux 6.14.

use crate::agent::TSCAP;
use crate::machine::Rig;

pub fn not_turned_off_before_6_14(rig: &Rig) {
    assert!(!rig.kernel.turns_interrupts_off_in_programs());
    let machine = rig.boot(&[]);
    let line = [TSCAP, "compare", "--quick", "--irqs-off"];
    let refused = machine.guest.start(&line).wait();
    let parts = [
        "cannot turn interrupts off",
        "no function bpf_local_irq_save",
        "6.14",
        "without --irqs-off",
    ];
    refused.failure(1, &parts);
}
