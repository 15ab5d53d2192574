//! VLAN tags that the network stack took off a frame before it came to the interface.

use std::fs;

use tscap_testkit::bridged::Bridged;
use tscap_testkit::capture::{Plan, capture_on};
use tscap_testkit::files;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with, skip};
use tscap_testkit::tcpdump::Tcpdump;

use super::frames::pads;

const C_TAG: u16 = 0x8100;
const S_TAG: u16 = 0x88a8;
const WARNING: &str = "the outer VLAN tag of a frame may be missing";

/// Whether this kernel tells XDP programs the tag.
fn kernel_tells_tags() -> bool {
    let symbols = fs::read_to_string("/proc/kallsyms").expect("kallsyms");
    symbols.contains(" bpf_xdp_metadata_rx_vlan_tag")
}

#[test]
fn tags_that_a_bridge_took_off_are_in_the_file_as_in_tcpdumps() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tcpdump"]) else {
        return;
    };
    if !kernel_tells_tags() {
        return skip("this kernel tells XDP programs no VLAN tag");
    }
    let joined = Bridged::new("tagback", 9000);
    // Untagged, with one tag or two, in one buffer or in several; those of 1511 to 1540
    // bytes are around what the program copies itself.
    let mut frames = Vec::new();
    for size in [60, 61, 62, 63, 1000, 1532, 1533, 1536, 1540, 4096, 8996] {
        let frame = joined.frame(size);
        frames.push(frame.clone());
        frames.push(frame.clone().tagged(C_TAG, 0xe064));
        frames.push(frame.clone().tagged(S_TAG, 7));
        frames.push(frame.tagged(S_TAG, 7).tagged(C_TAG, 42));
    }
    let bytes: Vec<_> = (0..)
        .zip(&frames)
        .map(|(n, frame)| frame.bytes(n))
        .collect();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for snaplen in [0, 1, 5, 12, 13, 14, 15, 16, 17, 19, 77, 1001] {
        let witness = folder.path().join("witness.pcap");
        let witness = Tcpdump::listen(&joined.far, &witness, bytes.len() as u64);
        let argument = snaplen.to_string();
        let plan = capture_on(&joined.far, &path).with(["-s", &argument, "--packet-meta"]);
        let capture = plan.ready();
        PacketSocket::open(&joined.bench.tx).send_all(&bytes);
        let seen = witness.finish();
        let finished = capture.stop();
        assert_eq!(finished.success().written, bytes.len() as u64);
        assert!(
            !finished.stderr.contains("warning: "),
            "{}",
            finished.stderr
        );
        let recording = Recording::read(&path);
        assert_eq!(recording.interfaces[0].custom["vlan_tags"], "kept");
        assert_eq!(recording.packets.len(), seen.len());
        let kept = if snaplen == 0 { usize::MAX } else { snaplen };
        for ((packet, seen), sent) in recording.packets.iter().zip(&seen).zip(&bytes) {
            assert_eq!(seen.data, *sent, "what tcpdump saw");
            assert_eq!(packet.origlen, seen.origlen);
            assert_eq!(
                packet.data,
                seen.data[..seen.data.len().min(kept)],
                "-s {snaplen}"
            );
        }
        assert_eq!(pads(&path), 0, "bytes of something else after a packet");
    }
}

#[test]
fn where_a_tag_can_be_missing_capture_and_file_say_so() {
    let Some(_lock) = root() else { return };
    let joined = Bridged::new("taghid", 1500);
    let far = &joined.far.netns;
    far.ip(&["link", "add", "mac0", "link", "far0", "type", "macvlan"]);
    let macvlan = Port::find(far, "mac0");
    macvlan.set(&["up"]);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let unknown = |plan: Plan<'_>| {
        let finished = plan.with(["--offloads", "off"]).ready().stop();
        finished.success();
        assert!(finished.stderr.contains(WARNING), "{}", finished.stderr);
        let recording = Recording::read(&path);
        assert_eq!(recording.interfaces[0].custom["vlan_tags"], "unknown");
    };
    let generic = |port| capture_on(port, &path).with(["--hook", "generic"]);
    unknown(generic(&joined.bridge));
    unknown(generic(&macvlan));
    unknown(generic(&joined.far));
    if !kernel_tells_tags() {
        unknown(capture_on(&joined.far, &path));
    }
}

/// Each interface has a program of its own then, over the same rings.
#[test]
fn tags_are_put_back_on_each_of_two_interfaces() {
    let Some(_lock) = root() else { return };
    if !kernel_tells_tags() {
        return skip("this kernel tells XDP programs no VLAN tag");
    }
    let joined = Bridged::new("tagtwo", 1500);
    let (middle, far) = (&joined.bridge.netns, &joined.far.netns);
    let pair = [
        "link", "add", "out1", "type", "veth", "peer", "name", "far1",
    ];
    middle.ip(&[&pair[..], &["netns", far.name()]].concat());
    let (out, second) = (Port::find(middle, "out1"), Port::find(far, "far1"));
    out.set(&["master", "bridge0"]);
    for port in [&out, &second] {
        port.set(&["up"]);
    }
    second.wait_up();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&joined.far, &path).on(&second).ready();
    // To an address that the bridge doesn't know: to all its ports.
    let frame = joined.frame(100).for_a_stranger().tagged(C_TAG, 100);
    PacketSocket::open(&joined.bench.tx).send(&frame, 0..50, 0);
    let finished = capture.stop();
    assert_eq!(finished.success().written, 100);
    let packets = Recording::read(&path).packets;
    for interface in [0, 1] {
        let of_it = packets.iter().filter(|it| it.interface == interface);
        for (number, packet) in (0..50).zip(of_it) {
            assert_eq!(packet.data, frame.bytes(number));
        }
        assert_eq!(
            packets
                .iter()
                .filter(|it| it.interface == interface)
                .count(),
            50
        );
    }
}
