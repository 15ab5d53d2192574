//! Short, tagged, long and too long frames.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;

use tscap_common::block::{
    CAPLEN_OFFSET, DATA_OFFSET, EPB_TYPE, LENGTH_OFFSET, MAX_CAPLEN, TYPE_OFFSET, padded,
};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::port::Port;
use tscap_testkit::process;
use tscap_testkit::recording::{Packet, Recording};
use tscap_testkit::root::{root, root_with};

const COUNT: u64 = 50;
const C_TAG: u16 = 0x8100;
const S_TAG: u16 = 0x88a8;

/// Captures frames of one kind, checks every byte of them, and returns them.
fn check(bench: &Bench, frame: &Frame) -> Vec<Packet> {
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(frame, 0..COUNT, 0);
    let finished = capture.stop();
    assert_eq!(
        finished.success().written,
        COUNT,
        "{:?}",
        finished.summary().outcomes
    );
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len() as u64, COUNT);
    for (number, packet) in recording.packets.iter().enumerate() {
        assert_eq!(
            (packet.origlen as usize, packet.data.len()),
            (frame.size(), frame.size())
        );
        frame.check(&packet.data, number as u64);
    }
    peers::agree_on(&path, COUNT);
    recording.packets
}

const PEERS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

#[test]
fn frames_of_every_short_length() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("short");
    // A bare header, and every remainder of the padding to four bytes.
    for size in 14..=18 {
        check(&bench, &Frame::new(&bench.tx, &bench.rx, size));
    }
}

#[test]
fn frames_of_every_length_are_whole_and_cut_where_asked() {
    let Some(_lock) = root() else { return };
    // Beyond what the program copies itself, word by word.
    let sizes = 14..=1600;
    let bench = Bench::with_mtu("lengths", 1600);
    let frames = sizes.map(|size| Frame::new(&bench.tx, &bench.rx, size));
    let frames: Vec<_> = frames.collect();
    let bytes: Vec<_> = (0..).zip(&frames).map(|(n, f)| f.bytes(n)).collect();
    for snaplen in [77, 1001, 262_144] {
        let folder = files::folder();
        let path = folder.path().join("out.pcapng");
        let argument = snaplen.to_string();
        let capture = capture_on(&bench.rx, &path).with(["-s", &argument]).ready();
        PacketSocket::open(&bench.tx).send_all(&bytes);
        let finished = capture.stop();
        assert_eq!(finished.success().written, frames.len() as u64);
        let packets = Recording::read(&path).packets;
        for (number, (packet, frame)) in packets.iter().zip(&frames).enumerate() {
            let caplen = frame.size().min(snaplen);
            assert_eq!(
                (packet.origlen as usize, packet.data.len()),
                (frame.size(), caplen)
            );
            frame.check(&packet.data, number as u64);
        }
        assert_eq!(pads(&path), 0, "bytes of something else after a packet");
    }
}

/// The sum of all bytes between the packets of a file and the words that follow them.
pub fn pads(path: &Path) -> u64 {
    let bytes = fs::read(path).expect("reads");
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4")) as usize;
    let (mut at, mut sum) = (0, 0);
    while at < bytes.len() {
        if word(at + TYPE_OFFSET) == EPB_TYPE as usize {
            let (caplen, data) = (word(at + CAPLEN_OFFSET), at + DATA_OFFSET);
            let pad = &bytes[data + caplen..data + padded(caplen)];
            sum += pad.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
        at += word(at + LENGTH_OFFSET);
    }
    sum
}

#[test]
fn tagged_frames_keep_their_tags() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("tags");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    check(&bench, &frame.clone().tagged(C_TAG, 42));
    check(&bench, &frame.clone().tagged(S_TAG, 7));
    check(&bench, &frame.tagged(S_TAG, 7).tagged(C_TAG, 42));
}

#[test]
fn jumbo_frames_are_whole() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::with_mtu("jumbo", 9000);
    // Around one page, where a frame becomes several buffers, up to the MTU.
    for size in [3500, 4096, 9014] {
        check(&bench, &Frame::new(&bench.tx, &bench.rx, size));
    }
}

#[test]
fn frames_longer_than_a_record_are_cut_to_the_longest() {
    let Some(_lock) = root() else { return };
    let bench = Bench::with_mtu("long", 65_535);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let socket = PacketSocket::open(&bench.tx);
    let long = Frame::new(&bench.tx, &bench.rx, 65_535 + 14);
    let short = Frame::new(&bench.tx, &bench.rx, 60);

    let capture = capture_on(&bench.rx, &path).ready();
    socket.send(&short, 0..1, 0);
    socket.send(&long, 1..6, 0);
    socket.send(&short, 6..7, 0);
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (7, 7));
    let recording = Recording::read(&path);
    assert_eq!(recording.last_statistics(0).os_drop, Some(0));
    assert_eq!(recording.interfaces[0].snaplen, 65_428);
    for (number, packet) in recording.packets.iter().enumerate() {
        let (frame, caplen) = match number {
            0 | 6 => (&short, 60),
            _ => (&long, MAX_CAPLEN),
        };
        let lengths = (packet.origlen as usize, packet.data.len());
        assert_eq!(lengths, (frame.size(), caplen));
        frame.check(&packet.data, number as u64);
    }

    let capture = capture_on(&bench.rx, &path).with(["-s", "65000"]).ready();
    socket.send(&long, 0..5, 0);
    assert_eq!(capture.stop().success().written, 5);
    for (number, packet) in Recording::read(&path).packets.iter().enumerate() {
        assert_eq!((packet.origlen, packet.data.len()), (65_549, 65_000));
        long.check(&packet.data, number as u64);
    }
}

#[test]
fn long_frames_of_the_loopback_are_cut_and_none_is_lost() {
    let Some(_lock) = root() else { return };
    // The longest datagram of IPv4, and what it is in a frame.
    const DATAGRAM: usize = 65_507;
    const LONG: usize = 14 + 20 + 8 + DATAGRAM;
    let netns = Arc::new(Netns::new("lo"));
    let loopback = Port::find(&netns, "lo");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&loopback, &path).ready();
    netns.enter(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let address = socket.local_addr().expect("an address");
        for length in [100, DATAGRAM, 100, DATAGRAM] {
            let sent = socket.send_to(&vec![7; length], address);
            assert_eq!(sent.expect("send"), length);
        }
    });
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (4, 4));
    let packets = Recording::read(&path).packets;
    let lengths = packets
        .iter()
        .map(|it| (it.origlen as usize, it.data.len()));
    let (short, long) = ((142, 142), (LONG, MAX_CAPLEN));
    assert_eq!(lengths.collect::<Vec<_>>(), [short, long, short, long]);
}

#[test]
fn packet_meta_adds_direction_and_queue() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("meta");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 61);
    let mut sender = LiveSender::open(&bench.tx);
    // A veth pair begins with one queue of those that it has.
    let queues = bench.rx.queues();
    bench.rx.netns.must(
        "ethtool",
        &["-L", &bench.rx.name, "rx", &queues.to_string()],
    );

    let capture = capture_on(&bench.rx, &path).with(["--packet-meta"]).ready();
    let cpus = process::cpus();
    for cpu in &cpus {
        sender.send(&frame, 10, *cpu);
    }
    capture.stop().success();

    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 10 * cpus.len());
    let mut counts = vec![0; queues as usize];
    for packet in &recording.packets {
        assert_eq!(packet.flags, Some(1), "inbound");
        counts[packet.queue.expect("a queue") as usize] += 1;
        frame.check(&packet.data, 0);
    }
    // veth picks the queue of a redirected frame by the sender's CPU.
    let mut expected = vec![0; queues as usize];
    for cpu in &cpus {
        expected[cpu % queues as usize] += 10;
    }
    assert_eq!(counts, expected);
}

#[test]
fn without_packet_meta_a_packet_has_no_options() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("nometa");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    capture.stop().success();
    for packet in Recording::read(&path).packets {
        assert_eq!(
            (packet.flags, packet.queue, packet.drops),
            (None, None, None)
        );
    }
}
