//! Native and generic mode on drivers that people have.

use tscap_testkit::files;
use tscap_testkit::finished::Finished;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;

use crate::machine::Rig;
use crate::nic::Kind;

/// Frames of each size: fewer than vmxnet3 has buffers (1024), which QEMU does
/// not wait for.
const FRAMES: u64 = 500;

/// Captures frames of several sizes and holds every byte against what was sent.
fn captures(rig: &Rig, kind: Kind, arguments: &[&str], mode: &str) -> Finished {
    let machine = rig.boot(&[kind]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let count = (3 * FRAMES).to_string();
    let arguments = [&["-i", &nic.name, "-c", &count], arguments].concat();
    let capture = guest.capture(&arguments).ready();
    let frames = [60, 333, 1514].map(|size| nic.frame(size));
    for (sent, frame) in (0..).step_by(FRAMES as usize).zip(&frames) {
        guest.wait_recorded(sent);
        nic.send(frame, 0..FRAMES);
    }
    let finished = capture.wait();
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (3 * FRAMES, 3 * FRAMES));
    assert_eq!(
        summary.interfaces[0].directions[0].hook.as_deref(),
        Some(mode)
    );
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, 3 * FRAMES);
    let recording = Recording::read(&path);
    let mut packets = recording.packets.iter();
    for frame in &frames {
        for number in 0..FRAMES {
            let packet = packets.next().expect("as many as were written");
            assert_eq!(packet.data.len(), frame.size());
            frame.check(&packet.data, number);
        }
    }
    finished
}

pub fn virtio_natively(rig: &Rig) {
    let finished = captures(rig, Kind::Virtio, &[], "native XDP");
    assert!(!finished.stderr.contains("warning"), "{}", finished.stderr);
}

/// As a port that only listens: frames end there.
pub fn virtio_generically(rig: &Rig) {
    let arguments = ["--hook", "generic", "--tap"];
    captures(rig, Kind::Virtio, &arguments, "generic XDP");
}

/// Its driver has native XDP since 6.6; before, clsact must do.
pub fn vmxnet3(rig: &Rig) {
    let native = rig.kernel.has_native_vmxnet3();
    let hook = if native {
        "native XDP"
    } else {
        "clsact ingress"
    };
    let finished = captures(rig, Kind::Vmxnet3, &[], hook);
    let reported = finished.stderr.contains("no native XDP");
    assert_eq!(reported, !native, "{}", finished.stderr);
}
