//! Receive interrupts on the CPUs of `--rx-cpu`, and back where they were.

use nix::sys::signal::Signal;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::machine::Rig;
use crate::nic::{Kind, Nic};

/// An affinity takes effect at the next interrupt, and what is being polled is
/// polled to its end: at most so many frames, one by one, come in elsewhere.
pub const FIRST: u64 = 20;
/// Those that follow the first one on its new CPU.
pub const FRAMES: u64 = 300;

/// The receive interrupts of virtio interfaces, in the order of their devices.
pub fn interrupts(guest: &Guest) -> Vec<String> {
    let text = guest.read("/proc/interrupts");
    let text = String::from_utf8(text).expect("UTF-8");
    let lines = text.lines().filter(|line| line.ends_with("-input.0"));
    let numbers = lines.filter_map(|line| line.split_once(':'));
    numbers.map(|(irq, _)| irq.trim().to_owned()).collect()
}

fn affinity(guest: &Guest, irq: &str) -> String {
    let text = guest.read(&format!("/proc/irq/{irq}/smp_affinity_list"));
    String::from_utf8(text).expect("UTF-8").trim().to_owned()
}

pub fn affinities(guest: &Guest) -> Vec<String> {
    let irqs = interrupts(guest);
    irqs.iter().map(|irq| affinity(guest, irq)).collect()
}

/// Sends to `nic` while a capture runs that has pinned it to `cpu`. Returns how
/// many frames came in elsewhere before the first one there; checks that all
/// after it came in there, and leaves the capture with [`FRAMES`] of those.
pub fn come_in_on(cpu: usize, guest: &Guest, nic: &Nic) -> u64 {
    let frame = nic.frame(100);
    let before = guest.recorded();
    let total: u64 = before.iter().sum();
    let elsewhere = (0..FIRST).find(|number| {
        nic.send(&frame, *number..number + 1);
        guest.wait_recorded(total + number + 1)[cpu] > before[cpu]
    });
    let elsewhere = elsewhere.unwrap_or_else(|| panic!("{FIRST} frames not on CPU {cpu}"));
    nic.send(&frame, 1..FRAMES);
    let recorded = guest.wait_recorded(total + elsewhere + FRAMES);
    assert_eq!(
        recorded[cpu],
        before[cpu] + FRAMES,
        "CPU {cpu}: {recorded:?}"
    );
    elsewhere
}

pub fn two_interrupts_on_two_cpus(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio, Kind::Virtio]);
    let guest = &machine.guest;
    let [one, other] = &machine.nics[..] else {
        panic!("two interfaces");
    };
    let before = affinities(guest);
    assert_eq!(before.len(), 2);
    for order in [[one, other], [other, one]] {
        let arguments = ["-i", &order[0].name, "-i", &order[1].name];
        let capture = guest.capture(&[&arguments[..], &["--rx-cpu", "0-1"]].concat());
        let capture = capture.ready();
        let expected = if order[0].name == one.name {
            ["0", "1"]
        } else {
            ["1", "0"]
        };
        assert_eq!(affinities(guest), expected);
        let elsewhere = come_in_on(0, guest, order[0]) + come_in_on(1, guest, order[1]);
        let summary = capture.stop().success();
        assert_eq!(summary.written, elsewhere + 2 * FRAMES);
        assert_eq!(affinities(guest), before, "restored");
    }
}

pub fn one_interrupt_to_either_cpu(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let before = affinities(guest);
    for cpu in [0, 1, 0] {
        let name = cpu.to_string();
        let arguments = ["-i", &nic.name, "--rx-cpu", &name];
        let capture = guest.capture(&arguments).ready();
        assert_eq!(affinities(guest), [name]);
        let elsewhere = come_in_on(cpu, guest, nic);
        let finished = capture.stop();
        assert_eq!(finished.success().written, elsewhere + FRAMES);
        assert_eq!(finished.events("summary")[0]["off_cpu"], elsewhere);
        assert_eq!(affinities(guest), before, "restored");
    }
}

pub fn killed_and_restored(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let before = affinities(guest);
    let arguments = ["-i", &nic.name, "--rx-cpu", "1"];
    let killed = guest.capture(&arguments).ready().stop_with(Signal::SIGKILL);
    assert_eq!(killed.signal, Some(9));
    assert_eq!(affinities(guest), ["1"], "a killed run can't restore");

    // The next one tells, and leaves it.
    let next = guest.capture(&["-i", &nic.name]).ready().stop();
    next.success();
    let reported = next.stderr.lines().find(|line| line.contains("killed"));
    assert!(
        reported.is_some_and(|line| line.contains("tscap restore")),
        "{}",
        next.stderr
    );
    assert_eq!(affinities(guest), ["1"]);

    let restored = guest.must(&[TSCAP, "restore"]);
    assert!(restored.contains("restored"), "{restored}");
    assert_eq!(affinities(guest), before);
    assert_eq!(guest.must(&[TSCAP, "restore"]), "nothing to restore");
}
