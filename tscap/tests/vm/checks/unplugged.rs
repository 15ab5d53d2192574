//! An interface is pulled out under a capture.

use tscap::Stop;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;

use crate::machine::Rig;
use crate::nic::Kind;

pub fn the_only_interface(rig: &Rig) {
    let mut machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let capture = guest.capture(&["-i", &nic.name, "--rx-cpu", "1"]).ready();
    nic.send(&nic.frame(100), 0..100);
    guest.wait_recorded(100);
    machine.qemu.unplug(nic);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("eth0"), "{}", finished.stderr);
    let summary = finished.accounted();
    assert_eq!((summary.seen, summary.written), (100, 100));
    assert_eq!(summary.stopped_by, Stop::InterfaceGone);
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, 100);
    assert_eq!(
        Recording::read(&path).last_statistics(0).delivered,
        Some(100)
    );
    // What it had changed has gone with it.
    assert_eq!(guest.must(&["tscap", "restore"]), "nothing to restore");
}

pub fn one_of_two(rig: &Rig) {
    let mut machine = rig.boot(&[Kind::Virtio, Kind::Virtio]);
    let (guest, nics) = (&machine.guest, &machine.nics);
    let capture = guest.capture(&["-i", "eth0", "-i", "eth1"]).ready();
    nics[0].send(&nics[0].frame(100), 0..100);
    guest.wait_recorded(100);
    machine.qemu.unplug(&nics[0]);
    capture.wait_line("tscap: interface eth0");
    nics[1].send(&nics[1].frame(100), 0..200);
    guest.wait_recorded(300);
    let finished = capture.stop();
    let summary = finished.accounted();
    let written: Vec<_> = summary.interfaces.iter().map(|it| it.written).collect();
    assert_eq!(written, [100, 200]);
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, 300);
}
