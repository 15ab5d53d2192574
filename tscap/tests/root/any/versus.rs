//! `-i any` beside tcpdump's, on the same interfaces at once.

use std::collections::BTreeMap;

use tscap_file::accounting::Direction;
use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::port::Port;
use tscap_testkit::root::root_with;
use tscap_testkit::tcpdump::Tcpdump;
use tscap_testkit::tun::Tun;

use super::node::{Node, PROGRAMS, SENT, read, send};

/// Bytes of LINKTYPE_LINUX_SLL2 ahead of a packet. The interface's number is in bytes 4 to 7
/// (libpcap, pcap/sll.h). tcpdump gives it in the place of each link's own header.
const SLL2: usize = 20;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// How often a packet was seen: by the interface's number, without the link's header.
type Seen = BTreeMap<(u32, Vec<u8>), u32>;

#[test]
fn the_same_packets_as_tcpdump() {
    let programs = [&PROGRAMS[..], &["tcpdump", "ping"]].concat();
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let node = Node::new("any-versus");
    let (one, other) = (node.cable("one"), node.cable("other"));
    let mut tun = Tun::new(&node.here, "tun0");
    let any = Port {
        name: "any".into(),
        ..one.here.clone()
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&node.here)
        .with(["-i", "any"])
        .to(&path)
        .start();
    let ready = capture.wait_event("ready");
    let listening = Direction::ALL.map(|way| {
        let path = folder.path().join(format!("{way:?}.pcap"));
        Tcpdump::watch(&any, &path, way)
    });
    one.exchange(0..200);
    other.exchange(200..500);
    node.here
        .must("ping", &["-q", "-c", "5", "-i", "0.01", "127.0.0.1"]);
    let mut packet = vec![0_u8; 40];
    (packet[0], packet[3]) = (0x45, 40);
    for number in 0..20 {
        packet[39] = number;
        tun.receive(&packet);
    }
    // The last ones of either direction, by which tcpdump is known to have all.
    send(&one.there, &one.here, 600..601);
    send(&one.here, &one.there, SENT + 600..SENT + 601);
    let last = [
        (&one.there, &one.here, 600),
        (&one.here, &one.there, SENT + 600),
    ];
    let last = last.map(|(from, to, number)| {
        let frame = tscap_testkit::frame::Frame::new(from, to, 100);
        frame.bytes(number)[ETHERNET..].to_vec()
    });
    let mut theirs = [Seen::new(), Seen::new()];
    for ((seen, tcpdump), last) in theirs.iter_mut().zip(listening).zip(&last) {
        for packet in tcpdump.stop_with(&[last]) {
            let index: [u8; 4] = packet.data[4..8].try_into().expect("four bytes");
            let of = (u32::from_be_bytes(index), packet.data[SLL2..].to_vec());
            *seen.entry(of).or_default() += 1;
        }
    }
    let summary = capture.stop().success();
    let recording = read(&path, &summary);
    let mut ours = [Seen::new(), Seen::new()];
    for packet in &recording.packets {
        let interface = &ready["interfaces"][packet.interface];
        let index = interface["ifindex"].as_u64().expect("a number") as u32;
        let header = if interface["name"] == "tun0" {
            0
        } else {
            ETHERNET
        };
        let is_sent = packet.flags.map(|flags| flags & 3) == Some(2);
        let seen = &mut ours[usize::from(is_sent)];
        *seen
            .entry((index, packet.data[header..].to_vec()))
            .or_default() += 1;
    }
    assert_eq!(ours, theirs);
    let counts = ours.map(|seen| seen.values().sum::<u32>());
    assert_eq!(counts, [200 + 300 + 10 + 20 + 1, 200 + 300 + 1]);
}
