//! Receive interrupts on the CPUs of `--rx-cpu`, and back where they were.

use nix::sys::signal::Signal;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::machine::Rig;
use crate::nic::{Kind, Nic};

/// An affinity takes effect at the next interrupt: the first frames may still
/// come in elsewhere.
const FIRST: u64 = 20;
/// Those that may not.
const FRAMES: u64 = 300;

/// The receive interrupts of virtio interfaces, in the order of their devices.
fn interrupts(guest: &Guest) -> Vec<String> {
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

fn affinities(guest: &Guest) -> Vec<String> {
    let irqs = interrupts(guest);
    irqs.iter().map(|irq| affinity(guest, irq)).collect()
}

/// Sends to `nic` while a capture runs; returns how many frames each CPU
/// recorded, without the first ones.
fn recorded(guest: &Guest, nic: &Nic) -> Vec<u64> {
    let frame = nic.frame(100);
    let so_far = || guest.recorded().iter().sum::<u64>();
    let before = so_far();
    nic.send(&frame, 0..FIRST);
    let first = guest.wait_recorded(before + FIRST);
    nic.send(&frame, FIRST..FIRST + FRAMES);
    let all = guest.wait_recorded(before + FIRST + FRAMES);
    let pairs = all.iter().zip(&first);
    pairs.map(|(all, first)| all - first).collect()
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
        assert_eq!(recorded(guest, order[0]), [FRAMES, 0]);
        assert_eq!(recorded(guest, order[1]), [0, FRAMES]);
        let summary = capture.stop().success();
        assert_eq!(summary.written, 2 * (FIRST + FRAMES));
        assert_eq!(affinities(guest), before, "restored");
    }
}

pub fn one_interrupt_to_either_cpu(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let before = affinities(guest);
    for (cpu, expected) in [("0", [FRAMES, 0]), ("1", [0, FRAMES])] {
        let capture = guest.capture(&["-i", &nic.name, "--rx-cpu", cpu]).ready();
        assert_eq!(affinities(guest), [cpu]);
        assert_eq!(recorded(guest, nic), expected, "--rx-cpu {cpu}");
        let finished = capture.stop();
        assert_eq!(finished.success().written, FIRST + FRAMES);
        let off_cpu = finished.events("summary")[0]["off_cpu"].as_u64();
        assert!(off_cpu.is_some_and(|frames| frames <= FIRST), "{off_cpu:?}");
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
    let told = next.stderr.lines().find(|line| line.contains("killed"));
    assert!(
        told.is_some_and(|line| line.contains("tscap restore")),
        "{}",
        next.stderr
    );
    assert_eq!(affinities(guest), ["1"]);

    let restored = guest.must(&[TSCAP, "restore"]);
    assert!(restored.contains("restored"), "{restored}");
    assert_eq!(affinities(guest), before);
    assert_eq!(guest.must(&[TSCAP, "restore"]), "nothing to restore");
}
