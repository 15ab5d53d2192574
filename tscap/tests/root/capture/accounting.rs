//! `seen` against the sender's own count, and every frame in its place.

use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with, two_cpus};

const PEERS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

#[test]
fn every_frame_of_a_packet_socket_is_in_the_file_in_order() {
    const FRAMES: u64 = 50_000;
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("packets");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);

    let capture = capture_on(&bench.rx, &path).ready();
    let sent = PacketSocket::open(&bench.tx).send(&frame, 0..FRAMES, 0);
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, sent);
    assert_eq!(summary.written, sent, "{:?}", summary.outcomes);
    assert_eq!(bench.rx.received(), sent);
    assert_eq!(summary.stopped_by, Stop::Signal);
    assert_eq!(summary.bytes_written, files::length(&path));
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len() as u64, sent);
    for (number, packet) in recording.packets.iter().enumerate() {
        assert_eq!(packet.origlen, 60);
        frame.check(&packet.data, number as u64);
        assert_eq!(packet.data.len(), 60);
    }
    assert_eq!(bench.rx.xdp_program(), None);
    peers::agree_on(&path, sent);
}

#[test]
fn live_frames_flat_out_are_all_accounted_for() {
    const FRAMES: u64 = 1_500_000;
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("live");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut sender = LiveSender::open(&bench.tx);

    let capture = capture_on(&bench.rx, &path).ready();
    let sent = sender.send(&frame, FRAMES, 0);
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, sent);
    assert_eq!(bench.rx.driver_counters()["rx_xdp_packets"], sent);
    let full = summary.outcomes[Outcome::RingFull];
    assert_eq!(summary.outcomes, [(Outcome::RingFull, full)].into());
    assert_eq!(peers::capinfos_count(&path), summary.written);
}

#[test]
fn frames_of_two_cpus_come_out_of_two_rings() {
    const FRAMES: u64 = 100_000;
    let Some(_lock) = root() else { return };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("cpus");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);

    let capture = capture_on(&bench.rx, &path).ready();
    let sent: u64 = std::thread::scope(|scope| {
        let senders = [(first, 0..FRAMES), (second, FRAMES..2 * FRAMES)].map(|(cpu, numbers)| {
            let (frame, tx) = (&frame, &bench.tx);
            scope.spawn(move || PacketSocket::open(tx).send(frame, numbers, cpu))
        });
        senders
            .into_iter()
            .map(|sender| sender.join().expect("a sender"))
            .sum()
    });
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, sent);
    assert_eq!(summary.written, sent, "{:?}", summary.outcomes);
    let recording = Recording::read(&path);
    let mut numbers: Vec<u64> = recording
        .packets
        .iter()
        .map(|p| frame.number(&p.data))
        .collect();
    // Not in order: both CPUs take frames out of the one queue of the veth.
    numbers.sort_unstable();
    assert!(
        numbers.into_iter().eq(0..sent),
        "a frame is missing or there twice"
    );
}

#[test]
fn two_interfaces_share_the_rings_and_are_counted_apart() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("two");
    let (tx1, rx1) = bench.add_pair(1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let (to_rx0, to_rx1) = (
        Frame::new(&bench.tx, &bench.rx, 100),
        Frame::new(&tx1, &rx1, 200),
    );

    let capture = capture(&bench.rx.netns)
        .on(&rx1)
        .on(&bench.rx)
        .to(&path)
        .ready();
    for port in [&rx1, &bench.rx] {
        assert!(port.xdp_program().is_some());
    }
    PacketSocket::open(&bench.tx).send(&to_rx0, 0..3000, 0);
    PacketSocket::open(&tx1).send(&to_rx1, 0..2000, 0);
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, 5000);
    let reported: Vec<_> = summary
        .interfaces
        .iter()
        .map(|i| (i.name.as_str(), i.ifindex, i.seen))
        .collect();
    assert_eq!(
        reported,
        [("rx1", rx1.index, 2000), ("rx0", bench.rx.index, 3000)]
    );
    let recording = Recording::read(&path);
    let names: Vec<_> = recording
        .interfaces
        .iter()
        .map(|i| i.name.as_str())
        .collect();
    assert_eq!(names, ["rx1", "rx0"], "in the order of the command line");
    for (index, frame, count) in [(0, &to_rx1, 2000), (1, &to_rx0, 3000)] {
        let packets: Vec<_> = recording.packets_of(index).collect();
        assert_eq!(packets.len(), count);
        for (number, packet) in packets.iter().enumerate() {
            frame.check(&packet.data, number as u64);
        }
        assert_eq!(
            recording.last_statistics(index).received,
            Some(count as u64)
        );
    }
    assert_eq!((rx1.xdp_program(), bench.rx.xdp_program()), (None, None));
}
