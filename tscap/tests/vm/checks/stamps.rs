//! Which clocks stamp here, and whether they tell the time.

use crate::machine::Rig;
use crate::nic::Kind;
use crate::support::files;
use crate::support::peers;
use crate::support::recording::Recording;

/// Frames of a capture.
const FRAMES: u64 = 300;

pub fn ktime(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let capture = guest.capture(&["-i", &nic.name, "-c", &FRAMES.to_string()]);
    let capture = capture.ready();
    let frame = nic.frame(100);
    nic.send(&frame, 0..FRAMES);
    let summary = capture.wait().success();
    assert_eq!((summary.seen, summary.written), (FRAMES, FRAMES));
    assert_eq!(summary.interfaces[0].xdp_mode, "native");
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, FRAMES);
    for (number, packet) in Recording::read(&path).packets.iter().enumerate() {
        frame.check(&packet.data, number as u64);
    }
}
