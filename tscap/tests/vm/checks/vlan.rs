//! VLAN tags that come in with the frame, and tags that the device takes off.

use std::path::Path;

use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;

use crate::machine::Rig;
use crate::nic::Kind;

/// Tag protocol identifiers of 802.1Q and 802.1ad.
const CUSTOMER: u16 = 0x8100;
const SERVICE: u16 = 0x88a8;
/// Frames of a capture.
const FRAMES: u64 = 100;

/// The VLANs of each packet, as tshark sees them.
fn vlans(path: &Path) -> Vec<String> {
    peers::tshark_lines(
        path,
        &["-T", "fields", "-e", "vlan.id", "-e", "ieee8021ad.id"],
    )
}

pub fn tags_in_line(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let tagged = nic.frame(100).tagged(CUSTOMER, 100);
    let twice = nic.frame(100).tagged(SERVICE, 7).tagged(CUSTOMER, 42);
    let count = (2 * FRAMES).to_string();
    let capture = guest.capture(&["-i", &nic.name, "-c", &count]).ready();
    nic.send(&tagged, 0..FRAMES);
    nic.send(&twice, 0..FRAMES);
    let finished = capture.wait();
    assert_eq!(finished.success().written, 2 * FRAMES);
    assert!(!finished.stderr.contains("warning"), "{}", finished.stderr);
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, 2 * FRAMES);
    let recording = Recording::read(&path);
    let (first, second) = recording.packets.split_at(FRAMES as usize);
    for (frame, packets) in [(&tagged, first), (&twice, second)] {
        for (number, packet) in packets.iter().enumerate() {
            assert_eq!(packet.data, frame.bytes(number as u64));
        }
    }
    let vlans = vlans(&path);
    assert!(
        vlans[..FRAMES as usize]
            .iter()
            .all(|ids| ids.trim() == "100"),
        "{vlans:?}"
    );
    assert!(
        vlans[FRAMES as usize..].iter().all(|ids| ids == "42\t7"),
        "{vlans:?}"
    );
}

pub fn tags_taken_off(rig: &Rig) {
    let machine = rig.boot(&[Kind::Vmxnet3]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let tagged = nic.frame(100).tagged(CUSTOMER, 100);
    let count = FRAMES.to_string();
    for offloads in ["keep", "off", "keep"] {
        let mut arguments = vec!["-i", &nic.name, "-c", &count, "--offloads", offloads];
        if !rig.kernel.has_native_vmxnet3() {
            // What auto takes then puts the tags back.
            arguments.extend(["--hook", "generic"]);
        }
        let capture = guest.capture(&arguments).ready();
        nic.send(&tagged, 0..FRAMES);
        let finished = capture.wait();
        assert_eq!(finished.success().written, FRAMES);
        let is_hidden = offloads == "keep";
        let mut lines = finished.stderr.lines();
        let warned = lines.any(|line| line.starts_with("warning: ") && line.contains("rx-vlan-"));
        assert_eq!(warned, is_hidden, "{}", finished.stderr);
        let folder = files::folder();
        let path = guest.bring(folder.path());
        peers::agree_on(&path, FRAMES);
        for (number, packet) in Recording::read(&path).packets.iter().enumerate() {
            let mut expected = tagged.bytes(number as u64);
            if is_hidden {
                expected.drain(12..16);
            }
            assert_eq!(packet.data, expected, "--offloads {offloads}");
        }
        let expected = if is_hidden { "" } else { "100" };
        assert!(vlans(&path).iter().all(|found| found.trim() == expected));
    }
}
