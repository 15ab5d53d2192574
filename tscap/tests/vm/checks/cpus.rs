//! CPUs that go and come under a capture.

use std::time::Duration;

use tscap_file::accounting::Outcome;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::wait::until;

use crate::guest::Guest;
use crate::machine::Rig;
use crate::nic::Kind;

use super::{merge, pinning};

/// Frames to a CPU that has no ring.
const FRAMES: u64 = 100;

fn turn(guest: &Guest, on: bool) {
    let line = format!(
        "echo {} > /sys/devices/system/cpu/cpu1/online",
        u8::from(on)
    );
    guest.must(&["sh", "-c", &line]);
}

/// Has the only interface's frames come in on CPU 1.
fn to_cpu_1(guest: &Guest) {
    let irqs = pinning::interrupts(guest);
    let line = format!("echo 1 > /proc/irq/{}/smp_affinity_list", irqs[0]);
    guest.must(&["sh", "-c", &line]);
}

/// The CPU is the converter's, too.
pub fn one_goes_and_comes_back(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    to_cpu_1(guest);
    let arguments = ["-i", &nic.name, "--converter-cpu", "1"];
    let capture = guest.capture(&arguments).ready();
    let mut frames = pinning::come_in_on(1, guest, nic);
    turn(guest, false);
    frames += pinning::come_in_on(0, guest, nic);
    turn(guest, true);
    to_cpu_1(guest);
    frames += pinning::come_in_on(1, guest, nic) + 3 * pinning::FRAMES;
    let finished = capture.stop();
    let warning = "the converter runs on CPU 1, which takes receive interrupts";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (frames, frames));
    let folder = files::folder();
    let file = guest.bring(folder.path());
    peers::agree_on(&file, frames);
    merge::is_in_order(&Recording::read(&file), &summary.clock);
}

/// One of `--rx-cpu`.
pub fn a_pinned_one_goes(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let before = pinning::affinities(guest);
    let capture = guest.capture(&["-i", &nic.name, "--rx-cpu", "1"]).ready();
    let mut frames = pinning::come_in_on(1, guest, nic) + pinning::FRAMES;
    turn(guest, false);
    frames += pinning::come_in_on(0, guest, nic) + pinning::FRAMES;
    let finished = capture.stop();
    assert_eq!(finished.success().written, frames);
    let off_cpu = finished.events("summary")[0]["off_cpu"].as_u64();
    assert!(off_cpu >= Some(pinning::FRAMES), "{off_cpu:?}");
    turn(guest, true);
    assert_eq!(pinning::affinities(guest), before, "restored");
}

/// It has no ring: each frame that comes in there is counted.
pub fn one_comes(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    turn(guest, false);
    let capture = guest.capture(&["-i", &nic.name]).ready();
    turn(guest, true);
    to_cpu_1(guest);
    let received = || {
        let path = format!("/sys/class/net/{}/statistics/rx_packets", nic.name);
        let text = String::from_utf8(guest.read(&path)).expect("UTF-8");
        text.trim().parse::<u64>().expect("a number")
    };
    let before = received();
    let frame = nic.frame(100);
    // The first ones still come in on the CPU before.
    for number in 0..FRAMES {
        nic.send(&frame, number..number + 1);
        until("a frame to come in", Duration::from_secs(30), || {
            (received() > before + number).then_some(())
        });
    }
    let summary = capture.stop().success();
    let lost = summary.outcomes[Outcome::NoRing];
    assert_eq!((summary.seen, summary.written + lost), (FRAMES, FRAMES));
    assert!(lost >= FRAMES - pinning::FIRST, "{summary:?}");
}
