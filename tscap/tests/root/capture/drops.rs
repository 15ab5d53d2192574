//! Drops are counted, and stand in the file where they happened.

use std::path::Path;
use std::time::Duration;

use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, LIMIT, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;
use tscap_testkit::wait::until;

/// Lets a capture with a full ring of 128 KiB go on, until that is in its file.
fn thaw_and_drain(capture: &Capture, path: &Path) {
    let before = files::length(path);
    capture.thaw();
    until("the ring in the file", LIMIT, || {
        (files::length(path) >= before + 96 * 1024).then_some(())
    });
}

#[test]
fn each_drop_count_is_the_gap_before_its_packet() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("gaps");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let small = Frame::new(&bench.tx, &bench.rx, 60);
    let large = Frame::new(&bench.tx, &bench.rx, 1514);
    let socket = PacketSocket::open(&bench.tx);

    let capture = capture_on(&bench.rx, &path)
        .with(["--ring-size", "128K"])
        .ready();
    let mut next = 0;
    let mut send = |frame: &Frame, count: u64, gap_ms: u64| {
        socket.send_paced(frame, next..next + count, 0, Duration::from_millis(gap_ms));
        next += count;
    };
    for round in 0..5 {
        capture.freeze();
        // More than the ring holds; large frames leave room that only small
        // ones fill, so that a round has several gaps.
        send(&small, 700, 0);
        for _ in 0..30 {
            send(&large, 3, 0);
            send(&small, 1, 0);
        }
        send(&small, 500 + 100 * round, 0);
        thaw_and_drain(&capture, &path);
        // Slow enough for the converter: the last ones come through and report
        // what was lost before them.
        send(&small, 20, 2);
    }
    let sent = next;
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, sent);
    let lost = summary.outcomes[Outcome::RingFull];
    assert_eq!(lost, summary.seen - summary.written);
    let recording = Recording::read(&path);
    let mut expected = 0;
    let mut gaps = 0;
    for packet in &recording.packets {
        let number = small.number(&packet.data);
        let gap = number - expected;
        assert_eq!(
            packet.drops,
            (gap > 0).then_some(gap),
            "before frame {number}"
        );
        gaps += usize::from(gap > 0);
        expected = number + 1;
    }
    assert_eq!(expected, sent, "the last frames came through");
    assert!(gaps >= 5, "{gaps} gaps");
    assert_eq!(recording.reported_drops(), lost);
    let last = recording.last_statistics(0);
    assert_eq!(
        (last.os_drop, last.delivered),
        (Some(lost), Some(summary.written))
    );
}

#[test]
fn live_frames_into_a_frozen_capture_are_counted_exactly() {
    const FRAMES: u64 = 300_000;
    let Some(_lock) = root() else { return };
    let bench = Bench::new("frozen");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut sender = LiveSender::open(&bench.tx);

    let capture = capture_on(&bench.rx, &path)
        .with(["--ring-size", "128K"])
        .ready();
    capture.freeze();
    let frozen = sender.send(&frame, FRAMES, 0);
    capture.thaw();
    let flowing = sender.send(&frame, FRAMES, 0);
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, frozen + flowing);
    // Frozen, a ring of 128 KiB keeps just as many blocks of 96 bytes as fit.
    assert!(
        summary.outcomes[Outcome::RingFull] >= frozen - 128 * 1024 / 96,
        "{:?}",
        summary.outcomes
    );
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len() as u64, summary.written);
    // Losses after the last packet have no packet to stand at.
    assert!(recording.reported_drops() <= summary.outcomes[Outcome::RingFull]);
    assert_eq!(
        recording.last_statistics(0).os_drop,
        Some(summary.outcomes[Outcome::RingFull])
    );
}

#[test]
fn drops_of_two_interfaces_are_told_apart() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("two-drops");
    let (tx1, rx1) = bench.add_pair(1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frames = [
        Frame::new(&bench.tx, &bench.rx, 60),
        Frame::new(&tx1, &rx1, 60),
    ];
    let sockets = [PacketSocket::open(&bench.tx), PacketSocket::open(&tx1)];

    let capture = capture_on(&bench.rx, &path)
        .on(&rx1)
        .with(["--ring-size", "128K"])
        .ready();
    capture.freeze();
    // Both share the ring of CPU 0. The first fills most of it, the rest is
    // lost in turn.
    sockets[0].send(&frames[0], 0..1000, 0);
    for start in (0..900).step_by(300) {
        sockets[1].send(&frames[1], start..start + 300, 0);
        sockets[0].send(&frames[0], 1000 + start..1000 + start + 300, 0);
    }
    thaw_and_drain(&capture, &path);
    let gap = Duration::from_millis(2);
    sockets[0].send_paced(&frames[0], 1900..1920, 0, gap);
    sockets[1].send_paced(&frames[1], 900..920, 0, gap);
    let finished = capture.stop();

    let summary = finished.success();
    let seen: Vec<u64> = summary
        .interfaces
        .iter()
        .map(|interface| interface.seen)
        .collect();
    assert_eq!(seen, [1920, 920]);
    let recording = Recording::read(&path);
    for (index, interface) in summary.interfaces.iter().enumerate() {
        let lost = interface.outcomes[Outcome::RingFull];
        assert!(lost > 0);
        let reported: u64 = recording
            .packets_of(index)
            .filter_map(|packet| packet.drops)
            .sum();
        assert_eq!(reported, lost, "{}", interface.name);
        assert_eq!(recording.last_statistics(index).os_drop, Some(lost));
        let mut expected = 0;
        for packet in recording.packets_of(index) {
            let number = frames[index].number(&packet.data);
            assert_eq!(
                packet.drops.unwrap_or(0),
                number - expected,
                "before frame {number}"
            );
            expected = number + 1;
        }
    }
}
