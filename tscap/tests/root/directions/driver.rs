//! Sent frames stamped before the driver, at a tracepoint of all devices of the machine:
//! only those of the interface that was asked for are taken, with their bytes wherever they
//! lie, by the filter as everywhere.

use std::sync::Arc;

use tscap::Summary;
use tscap_file::accounting::{Direction, Outcome};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Plan, capture_both};
use tscap_testkit::cut_frames::{CutFrames, LEAST_CUT};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;

use super::versus::{Versus, check_account};

const PROGRAMS: [&str; 4] = ["ip", "ethtool", "tcpdump", "capinfos"];
const DRIVER: [&str; 2] = ["--egress-point", "driver"];

/// A capture of what `port` sends.
fn sent_by(port: &Port) -> Plan<'_> {
    let plan = capture_both(&port.netns).on(port);
    plan.with(["-Q", "out"]).with(DRIVER)
}

fn send(port: &Port, frame: &Frame, numbers: std::ops::Range<u64>) {
    let frames: Vec<_> = numbers.map(|number| frame.bytes(number)).collect();
    PacketSocket::open(port).send_all(&frames);
}

/// Seen, written and filtered of what was sent.
fn counts(summary: &Summary) -> [u64; 3] {
    let [sent] = &summary.directions[..] else {
        panic!("{:?}", summary.directions);
    };
    assert!(summary.adds_up && sent.direction == "out");
    let totals = &sent.totals;
    let filtered = totals.outcomes[Outcome::Filtered];
    [totals.seen, totals.written, filtered]
}

#[test]
fn frames_of_other_interfaces_are_not_taken() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-others");
    let (tx1, rx1) = bench.add_pair(1);
    // Each is the first one of its namespace.
    let same = Bench::new("dir-same");
    assert_eq!([bench.tx.index, same.rx.index], [bench.rx.index; 2]);
    let others = [&bench.tx, &tx1, &rx1, &same.rx];
    let versus = Versus::start(&[&bench.rx], &DRIVER);
    for (number, other) in (1..).zip(others) {
        let frame = Frame::between(other.mac, bench.rx.mac, 100);
        send(other, &frame, 1000 * number..1000 * number + 200);
    }
    send(&bench.rx, &Frame::new(&bench.rx, &bench.tx, 100), 0..200);
    versus.last_from(&[&bench.tx, &bench.rx]);
    let compared = versus.stop();
    compared.are_same();
    assert_eq!(compared.side(Direction::Out).frames(), 200);
}

/// Each has a program of its own, and frames and account of its own.
#[test]
fn two_interfaces_are_told_apart() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-two");
    let (tx1, rx1) = bench.add_pair(1);
    let versus = Versus::start(&[&bench.rx, &rx1], &DRIVER);
    send(&bench.rx, &Frame::new(&bench.rx, &bench.tx, 100), 0..300);
    send(&rx1, &Frame::new(&rx1, &tx1, 100), 1000..1200);
    versus.last_from(&[&bench.tx, &bench.rx, &tx1, &rx1]);
    let compared = versus.stop();
    compared.are_same();
    let sent = compared.sides.iter().map(|it| it[Direction::Out].frames());
    assert!(sent.eq([300, 200]));
}

/// What is decided on lies in the tag beside a frame, or in its last bytes, far behind its
/// first buffer.
#[test]
fn the_filter_sees_all_of_a_frame() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::with_mtu("dir-filter", 9000);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = |filter| sent_by(&bench.rx).to(&path).with(["-s", "100", filter]);

    let long = Frame::new(&bench.rx, &bench.tx, 2 * LEAST_CUT);
    let capture = plan("ether[8191] & 1 = 0 and len = 8192 and outbound").ready();
    let cut = CutFrames::open(&bench.rx);
    for number in 0..100 {
        assert!(cut.send(&long.bytes(number), 14, 0));
    }
    let summary = capture.stop().success();
    assert_eq!(counts(&summary), [100, 50, 50]);
    let recording = Recording::read(&path);
    check_account(&summary, &recording);
    for packet in &recording.packets {
        assert_eq!((packet.data.len(), packet.origlen), (100, 8192));
        assert_eq!(long.number(&packet.data) % 2, 1, "its last byte is even");
    }

    let capture = plan("not inbound and not ifindex 4711").ready();
    send(&bench.rx, &long, 0..10);
    assert_eq!(counts(&capture.stop().success()), [10, 10, 0]);
}

/// A bridge keeps the tag of a frame that it forwards beside it.
#[test]
fn the_filter_sees_a_tag_beside_the_frame() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("dir-filter-tag");
    let (tx1, rx1) = bench.add_pair(1);
    let netns = &bench.rx.netns;
    let link = "link add bridge0 type bridge mcast_snooping 0";
    netns.ip(&link.split(' ').collect::<Vec<_>>());
    for port in [&bench.rx, &rx1] {
        port.set(&["master", "bridge0"]);
    }
    netns.ip(&["link", "set", "bridge0", "up"]);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = sent_by(&rx1).to(&path);
    let capture = plan.with(["vlan 42 and ether[16:2] = 0x88b5"]).ready();
    let frame = Frame::between(bench.tx.mac, tx1.mac, 200);
    for number in 0..30 {
        let tag = if number % 3 == 0 { 42 } else { 43 };
        let frame = frame.clone().tagged(0x8100, tag);
        send(&bench.tx, &frame, number..number + 1);
    }
    // Sent before the frame is handed to the peer.
    tscap_testkit::wait::until("the last frame", tscap_testkit::capture::LIMIT, || {
        (tx1.received() >= 30).then_some(())
    });
    let summary = capture.stop().success();
    assert_eq!(counts(&summary), [30, 10, 20]);
    let frame = frame.tagged(0x8100, 42);
    for (number, packet) in (0..).step_by(3).zip(Recording::read(&path).packets) {
        frame.check(&packet.data, number);
        assert_eq!(packet.data.len(), frame.size());
    }
}

/// It is told by its number in its namespace.
#[test]
fn an_interface_that_moves_is_told_of() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-driver-move");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let capture = capture.with(["--hook", "xdp"]).with(DRIVER).ready();
    send(&bench.rx, &Frame::new(&bench.rx, &bench.tx, 100), 0..50);
    let there = Arc::new(Netns::new("dir-driver-there"));
    bench.rx.set(&["netns", there.name()]);
    capture.wait_line("tscap: rx0: nothing is captured at driver egress any more");
    let moved = Port::find(&there, "rx0");
    moved.set(&["up"]);
    moved.wait_up();
    send(&moved, &Frame::new(&moved, &bench.tx, 100), 50..100);
    let frame = Frame::new(&bench.tx, &moved, 100);
    send(&bench.tx, &frame, 0..50);
    let summary = capture.stop().success();
    let [received, sent] = &summary.directions[..] else {
        panic!("{:?}", summary.directions);
    };
    assert_eq!((received.totals.seen, sent.totals.seen), (50, 50));
    assert!(summary.adds_up);
}

#[test]
fn the_summary_and_the_file_name_the_point() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-driver-name");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = sent_by(&bench.rx).to(&path).start();
    let ready = capture.wait_ready();
    assert!(ready.contains("rx0 (out: driver egress)"), "{ready}");
    assert_eq!(bench.rx.xdp_program(), None);
    let summary = capture.stop().success();
    let of_each = &summary.interfaces[0].directions;
    assert_eq!(of_each[0].hook.as_deref(), Some("driver egress"));
    let hooks = &Recording::read(&path).interfaces[0].custom["hooks"];
    assert_eq!(*hooks, serde_json::json!({ "out": "driver egress" }));
}

/// The capture is in another namespace, where the same number is another interface's.
#[test]
fn an_interface_of_another_namespace() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-driver-netns");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&bench.tx.netns).with(["--netns", bench.rx.netns.name()]);
    let plan = plan.on(&bench.rx).with(["-Q", "out"]).with(DRIVER);
    let capture = plan.to(&path).ready();
    send(&bench.rx, &Frame::new(&bench.rx, &bench.tx, 100), 0..50);
    // By then it was looked after several times.
    capture.wait_event("progress");
    send(&bench.tx, &Frame::new(&bench.tx, &bench.rx, 100), 0..50);
    send(&bench.rx, &Frame::new(&bench.rx, &bench.tx, 100), 50..100);
    assert_eq!(counts(&capture.stop().success()), [100, 100, 0]);
}
