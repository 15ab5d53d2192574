//! Each option, with numbered frames.

use std::time::Duration;

use tscap::Stop;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::root::{root, root_with};

use super::together::{check, check_frames, names};

const PEERS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

#[test]
fn sizes_as_tcpdump_has_them() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("size");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 968);
    let capture = capture_on(&bench.rx, &path).with(["-C", "1"]).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..3500, 0);
    let finished = capture.stop();
    finished.success();
    let (summary, recordings) = check(&finished);
    check_frames(&recordings, &frame, 0..3500);
    assert_eq!(
        names(folder.path()),
        ["out.pcapng", "out.pcapng1", "out.pcapng2", "out.pcapng3"]
    );
    assert_eq!(summary.file, path.to_str().expect("a UTF-8 path"));
    // As tcpdump: the packet that crosses the limit is the last. Then statistics.
    for file in &finished.files()[..3] {
        assert!((1_000_001..1_003_500).contains(&file.bytes), "{file:?}");
        peers::agree_on(&file.path, file.frames);
    }
}

#[test]
fn a_ring_of_sizes_as_tcpdump_has_it() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("size-ring");
    let folder = files::folder();
    let path = folder.path().join("out");
    std::fs::write(folder.path().join("out01"), "an older file").expect("write a file");
    let frame = Frame::new(&bench.tx, &bench.rx, 968);
    let plan = capture_on(&bench.rx, &path).with(["-C", "100k", "-W", "11"]);
    let capture = plan.ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1500, 0);
    let finished = capture.stop();
    let reported = finished.success().files.expect("several files");
    let (_, recordings) = check(&finished);
    assert_eq!(names(folder.path()).len(), 11);
    assert_eq!(names(folder.path())[0], "out00");
    // 103 or 104 frames a file.
    assert_eq!(
        (reported.written, reported.removed, reported.replaced),
        (15, 4, 1)
    );
    let first = reported.frames_removed;
    assert!((4 * 100..4 * 104).contains(&first), "{reported:?}");
    let mut ordered = recordings;
    ordered.sort_by_key(|recording| recording.packets[0].nanos);
    check_frames(&ordered, &frame, first..1500);
}

#[test]
fn seconds_as_tcpdump_has_them() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("seconds");
    let folder = files::folder();
    let path = folder.path().join("out-%s-%Y.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let plan = capture_on(&bench.rx, &path).with(["-G", "1", "-W", "3"]);
    let capture = plan.ready();
    let socket = PacketSocket::open(&bench.tx);
    let gap = Duration::from_millis(1);
    let sent = socket.send_paced(&frame, 0..3500, 0, gap);
    let finished = capture.wait();
    let summary = finished.success();
    assert_eq!(summary.stopped_by, Stop::Files);
    assert!(summary.seen <= sent);
    let (_, recordings) = check(&finished);
    check_frames(&recordings, &frame, 0..summary.written);
    let files = finished.files();
    assert_eq!(files.len(), 3);
    let bound = summary.clock.host_bound_ns;
    for (file, recording) in files.iter().zip(&recordings) {
        let second = file.start_ns / 1_000_000_000;
        let name = file.path.file_name().and_then(|name| name.to_str());
        let name = name.expect("a UTF-8 name");
        assert!(name.starts_with(&format!("out-{second}-20")), "{name}");
        let span = file.start_ns - bound..file.start_ns + 1_000_000_000 + bound;
        let mut packets = recording.packets.iter();
        assert!(packets.all(|packet| span.contains(&packet.nanos)));
        peers::agree_on(&file.path, file.frames);
    }
    for file in &files[..2] {
        let length = file.end_ns - file.start_ns;
        assert!(length.abs_diff(1_000_000_000) <= 2 * bound, "{file:?}");
    }
}

#[test]
fn seconds_without_a_format_replace_and_with_sizes_number() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("replace");
    let folder = files::folder();
    let path = folder.path().join("out");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let plan = capture_on(&bench.rx, &path).with(["-G", "1"]);
    let capture = plan.ready();
    capture.wait_line("note: all files have the same name");
    socket.send(&frame, 0..10, 0);
    capture.wait_event("file");
    socket.send(&frame, 10..25, 0);
    let finished = capture.stop();
    let reported = finished.success().files.expect("several files");
    assert_eq!(
        (reported.removed, reported.replaced),
        (reported.written - 1, 0)
    );
    assert_eq!(names(folder.path()), ["out"]);
    check(&finished);

    let named = folder.path().join("%S-");
    let plan = capture_on(&bench.rx, &named).with(["-G", "60", "-C", "1k", "-W", "2"]);
    let capture = plan.ready();
    socket.send(&frame, 0..100, 0);
    let finished = capture.stop();
    finished.success();
    check(&finished);
    let names = names(folder.path());
    // "out", and a ring of two in the one period that there was.
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(
        names[0].ends_with("-0") && names[1].ends_with("-1"),
        "{names:?}"
    );
}

#[test]
fn criteria_as_dumpcap_has_them() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("dumpcap");
    let frame = Frame::new(&bench.tx, &bench.rx, 968);
    let socket = PacketSocket::open(&bench.tx);
    for (criteria, files_made, kept) in [
        (&["-b", "packets:100"][..], 6, 6),
        (&["-b", "packets:100", "-b", "files:2"], 6, 2),
        (&["-b", "filesize:100", "-b", "files:3"], 6, 3),
        (&["-b", "filesize:100", "-b", "packets:60"], 10, 10),
    ] {
        let folder = files::folder();
        let path = folder.path().join("out.x.pcapng");
        let capture = capture_on(&bench.rx, &path).with(criteria).ready();
        socket.send(&frame, 0..590, 0);
        let finished = capture.stop();
        let reported = finished.success().files.expect("several files");
        assert_eq!(reported.written, files_made, "{criteria:?}");
        assert_eq!(reported.removed, files_made - kept, "{criteria:?}");
        let (_, recordings) = check(&finished);
        check_frames(&recordings, &frame, reported.frames_removed..590);
        let names = names(folder.path());
        assert_eq!(names.len() as u64, kept);
        let first = format!("out.x_{:05}_20", files_made - kept + 1);
        assert!(names[0].starts_with(&first), "{names:?}");
        // prefix, underline, 5 digits, underline, 14 digits.
        assert_eq!(names[0].len(), "out.x__.pcapng".len() + 5 + 14);
        peers::agree_on(
            &folder.path().join(&names[0]),
            recordings[0].packets.len() as u64,
        );
    }
}

#[test]
fn durations_and_the_clocks_own_seconds() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("duration");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    for (criterion, length) in [
        ("duration:0.25", 250_000_000),
        ("interval:1", 1_000_000_000),
    ] {
        let folder = files::folder();
        let path = folder.path().join("out.pcapng");
        let capture = capture_on(&bench.rx, &path).with(["-b", criterion]).ready();
        let gap = Duration::from_millis(1);
        socket.send_paced(&frame, 0..2200, 0, gap);
        let finished = capture.stop();
        finished.success();
        let (summary, recordings) = check(&finished);
        check_frames(&recordings, &frame, 0..2200);
        let files = finished.files();
        let bound = 2 * summary.clock.host_bound_ns;
        let whole = &files[1..files.len() - 1];
        assert!(!whole.is_empty(), "{files:?}");
        let mut exact = 0;
        for file in whole {
            let took = file.end_ns - file.start_ns;
            // A machine that stands still leaves a period out.
            let periods = (took + length / 2) / length;
            assert!(periods >= 1, "{file:?}");
            assert!(took.abs_diff(periods * length) <= bound, "{file:?}");
            exact += usize::from(periods == 1);
            if criterion.starts_with("interval") {
                assert_eq!(file.start_ns % length, 0, "{file:?}");
            }
        }
        assert!(2 * exact > whole.len(), "{files:?}");
        for (file, recording) in files.iter().zip(&recordings) {
            let span = file.start_ns - bound..file.end_ns + bound;
            let mut packets = recording.packets.iter();
            assert!(packets.all(|packet| span.contains(&packet.nanos)));
        }
    }
}

#[test]
fn two_interfaces_are_in_every_file() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("two");
    let (tx1, rx1) = bench.add_pair(1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_on(&bench.rx, &path).on(&rx1);
    let capture = plan.with(["-b", "packets:50"]).ready();
    let first = PacketSocket::open(&bench.tx);
    let second = PacketSocket::open(&tx1);
    for round in 0..10 {
        let numbers = round * 20..(round + 1) * 20;
        first.send(&Frame::new(&bench.tx, &bench.rx, 60), numbers.clone(), 0);
        second.send(&Frame::new(&tx1, &rx1, 60), numbers, 0);
    }
    let finished = capture.stop();
    finished.success();
    let (_, recordings) = check(&finished);
    assert_eq!(recordings.len(), 8);
    assert!(
        recordings
            .iter()
            .all(|recording| recording.interfaces.len() == 2)
    );
}
