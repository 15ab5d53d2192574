//! `-c`, `--duration`, `-s`.

use std::time::{Duration, Instant};

use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone, root};

#[test]
fn count_writes_exactly_so_many_frames() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("count");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);

    let capture = capture_on(&bench.rx, &path).with(["-c", "1234"]).ready();
    // One batch after another without a pause: some come in after the count.
    let sent = PacketSocket::open(&bench.tx).send(&frame, 0..20_000, 0);
    let finished = capture.wait();

    let summary = finished.success();
    assert_eq!(summary.written, 1234);
    assert_eq!(summary.stopped_by, Stop::Count);
    assert!(summary.seen <= sent);
    assert_eq!(
        summary.outcomes[Outcome::AfterStop],
        summary.seen - 1234,
        "{:?}",
        summary.outcomes
    );
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 1234);
    frame.check(&recording.packets[1233].data, 1233);
    // Frames past the end were seen, but neither lost nor delivered.
    let last = recording.last_statistics(0);
    assert_eq!((last.os_drop, last.delivered), (Some(0), Some(1234)));
}

#[test]
fn a_count_of_one_is_enough_to_end() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("one");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).with(["-c", "1"]).ready();
    PacketSocket::open(&bench.tx).send(&frame, 7..8, 0);
    assert_eq!(capture.wait().success().written, 1);
    frame.check(&Recording::read(&path).packets[0].data, 7);
}

#[test]
fn duration_ends_the_capture() {
    let Some(_lock) = alone("compares times") else {
        return;
    };
    let bench = Bench::new("duration");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);

    let start = Instant::now();
    let capture = capture_on(&bench.rx, &path)
        .with(["--duration", "1"])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let finished = capture.wait();
    let took = start.elapsed();

    let summary = finished.success();
    assert_eq!((summary.written, summary.stopped_by), (100, Stop::Duration));
    assert!(
        (0.9..3.0).contains(&summary.seconds),
        "{} s",
        summary.seconds
    );
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(6)).contains(&took),
        "{took:?}"
    );
}

#[test]
fn snaplen_cuts_the_bytes_and_keeps_the_length() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("snaplen");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let socket = PacketSocket::open(&bench.tx);
    let sizes = [14, 95, 96, 97, 98, 99, 100, 1514];

    let capture = capture_on(&bench.rx, &path).with(["-s", "96"]).ready();
    for size in sizes {
        socket.send(&Frame::new(&bench.tx, &bench.rx, size), 5..6, 0);
    }
    capture.stop().success();

    let recording = Recording::read(&path);
    assert_eq!(recording.interfaces[0].snaplen, 96);
    assert_eq!(recording.packets.len(), sizes.len());
    for (packet, size) in recording.packets.iter().zip(sizes) {
        assert_eq!(
            (packet.origlen as usize, packet.data.len()),
            (size, size.min(96))
        );
        Frame::new(&bench.tx, &bench.rx, size).check(&packet.data, 5);
    }
}

#[test]
fn snaplen_zero_is_the_default() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("snap0");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let capture = capture_on(&bench.rx, &path).with(["-s", "0"]).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1, 0);
    capture.stop().success();
    let recording = Recording::read(&path);
    assert_eq!(recording.interfaces[0].snaplen, 65_428);
    assert_eq!(recording.packets[0].data.len(), 1514);
}

#[test]
fn an_interface_goes_by_its_number_and_dumpcaps_condition_ends_the_capture() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("number");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let number = bench.rx.index.to_string();
    let plan = capture(&bench.rx.netns).with(["-i", &number]).to(&path);
    let capture = plan.with(["-nn", "-a", "packets:10"]).ready();
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    PacketSocket::open(&bench.tx).send(&frame, 0..20, 0);
    let finished = capture.wait();
    assert_eq!(finished.success().interfaces[0].name, bench.rx.name);
    assert_eq!(finished.success().written, 10);
    let plan = capture_on(&bench.rx, &path).with(["-i", &number]);
    plan.run().failure(1, &["twice"]);
}
