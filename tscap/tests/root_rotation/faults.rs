//! What goes wrong where one file ends.

use crate::support::bench::Bench;
use crate::support::capture::capture_on;
use crate::support::files::{self, SmallDisk};
use crate::support::frame::Frame;
use crate::support::live::LiveSender;
use crate::support::packet_socket::PacketSocket;
use crate::support::peers;
use crate::support::recording::Recording;
use crate::support::root::{root, root_with};
use crate::together::{check, check_frames};

/// Disks of many sizes, so that they are full in every place: a block, the
/// statistics of one file, the headers of the next.
#[test]
fn a_disk_that_is_full_keeps_whole_files() {
    let programs = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];
    let Some(_turn) = root_with("a_disk_that_is_full", &programs) else {
        return;
    };
    let bench = Bench::new("disk-cut");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let socket = PacketSocket::open(&bench.tx);
    let mut failed_to_begin = 0;
    for pages in 24..36 {
        let disk = SmallDisk::new(pages * 4096);
        let path = disk.file("out");
        // Each file is 8 pages when it is full, but for a few bytes.
        let capture = capture_on(&bench.rx, &path)
            .with(["-b", "packets:29"])
            .ready();
        let sent = socket.send(&frame, 0..300, 0);
        let finished = capture.wait();
        finished.failure(1, &["out_", "no space"]);
        let summary = finished.accounted();
        assert_eq!(summary.stopped_by, "write_error");
        assert!(summary.seen <= sent);
        assert!(
            summary.outcomes["write_failed"] > 0,
            "{:?}",
            summary.outcomes
        );
        let files = finished.files();
        let recordings: Vec<_> = files
            .iter()
            .map(|file| Recording::read(&file.path))
            .collect();
        check_frames(&recordings, &frame, 0..summary.written);
        // The last one may have no room for them.
        for recording in &recordings[..files.len() - 1] {
            assert_eq!(recording.last_statistics(0).delivered, Some(29));
        }
        for (file, recording) in files.iter().zip(&recordings) {
            assert_eq!(file.frames, recording.packets.len() as u64);
            assert_eq!(file.bytes, files::length(&file.path));
        }
        failed_to_begin += u64::from(finished.stderr.contains("cannot begin the next file"));
        let last = files.last().expect("files");
        peers::agree_on(&last.path, last.frames);
        assert_eq!(bench.rx.xdp_program(), None);
    }
    assert!(
        (1..12).contains(&failed_to_begin),
        "{failed_to_begin} of 12"
    );
}

#[test]
fn a_folder_that_goes_away_ends_the_capture() {
    let Some(_turn) = root("a_folder_that_goes_away") else {
        return;
    };
    let bench = Bench::new("gone");
    let outer = files::folder();
    let (inner, moved) = (outer.path().join("inner"), outer.path().join("moved"));
    std::fs::create_dir(&inner).expect("make a folder");
    let path = inner.join("out");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).with(["-C", "1k"]).ready();
    socket.send(&frame, 0..2, 0);
    std::fs::rename(&inner, &moved).expect("move the folder");
    socket.send(&frame, 2..100, 0);
    let finished = capture.wait();
    finished.failure(1, &["cannot begin the next file", "out1", "no such file"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, "write_error");
    assert_eq!(
        summary.outcomes["write_failed"],
        summary.seen - summary.written
    );
    assert_eq!(summary.files.expect("several files").written, 1);
    let recording = Recording::read(&moved.join("out"));
    assert_eq!(recording.packets.len() as u64, summary.written);
    let totals = &recording.last_statistics(0).custom["totals"];
    assert_eq!(totals["written"].as_u64(), Some(summary.written));
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn a_name_that_is_taken_by_a_folder_ends_the_capture() {
    let Some(_turn) = root("a_name_that_is_taken_by_a_folder") else {
        return;
    };
    let bench = Bench::new("read-only");
    let folder = files::folder();
    let path = folder.path().join("out");
    // A name in use that is no file.
    std::fs::create_dir(folder.path().join("out2")).expect("make a folder");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut sender = LiveSender::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).with(["-C", "100k"]).ready();
    // Flat out: the rings are full of frames when it happens.
    let (_, taken) = sender.pour(&frame, 200_000, 0);
    let finished = capture.wait();
    finished.failure(1, &["cannot begin the next file", "out2", "no file"]);
    let (summary, _) = check(&finished);
    assert!(summary.seen <= taken);
    assert_eq!(summary.files.expect("several files").written, 2);
}

#[test]
fn existing_names_are_taken_over_and_links_are_not_followed() {
    let Some(_turn) = root("existing_names_are_taken_over") else {
        return;
    };
    let bench = Bench::new("existing");
    let folder = files::folder();
    let path = folder.path().join("out");
    let name = |name: &str| folder.path().join(name);
    std::fs::write(name("out1"), vec![0x55; 1_000_000]).expect("an older file");
    std::fs::hard_link(name("out1"), name("kept")).expect("another name of it");
    std::fs::write(name("elsewhere"), "not ours").expect("a file");
    std::os::unix::fs::symlink("elsewhere", name("out2")).expect("a link to it");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).with(["-C", "1k"]).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..60, 0);
    let finished = capture.stop();
    finished.success();
    let (summary, recordings) = check(&finished);
    check_frames(&recordings, &frame, 0..60);
    assert_eq!(summary.files.expect("several files").replaced, 2);
    assert_eq!(files::length(&name("kept")), 1_000_000);
    assert_eq!(
        std::fs::read(name("elsewhere")).expect("read it"),
        b"not ours"
    );
    let removed = finished.events("removed");
    assert!(
        removed.iter().all(|event| event["frames"].is_null()),
        "{removed:?}"
    );
}
