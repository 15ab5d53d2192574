//! What goes wrong where one file ends.

use std::os::unix::fs::PermissionsExt;

use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on};
use tscap_testkit::files::{self, SmallDisk};
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};
use tscap_testkit::wait::until;

use super::together::{check, check_frames};

/// Disks of many sizes, so that they are full in every place: a block, the
/// statistics of one file, the headers of the next.
#[test]
fn a_disk_that_is_full_keeps_whole_files() {
    let programs = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("disk-cut");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let socket = PacketSocket::open(&bench.tx);
    let mut failed_to_begin = 0;
    for pages in (20..26).chain(44..50) {
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
        assert_eq!(summary.stopped_by, Stop::WriteError);
        assert!(summary.seen <= sent);
        assert!(
            summary.outcomes[Outcome::WriteFailed] > 0,
            "{:?}",
            summary.outcomes
        );
        let files = finished.files();
        let recordings: Vec<_> = files
            .iter()
            .map(|file| Recording::read(&file.path))
            .collect();
        check_frames(&recordings, &frame, 0..summary.written);
        for (file, recording) in files.iter().zip(&recordings) {
            let delivered = recording.last_statistics(0).delivered;
            assert_eq!(delivered, Some(file.frames), "{pages} pages");
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
    let Some(_lock) = root() else { return };
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
    assert_eq!(summary.stopped_by, Stop::WriteError);
    assert_eq!(
        summary.outcomes[Outcome::WriteFailed],
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
    let Some(_lock) = root() else { return };
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
    let Some(_lock) = root() else { return };
    let bench = Bench::new("existing");
    let folder = files::folder();
    let path = folder.path().join("out");
    let name = |name: &str| folder.path().join(name);
    std::fs::write(name("out1"), vec![0x55; 1_000_000]).expect("an older file");
    std::fs::hard_link(name("out1"), name("kept")).expect("another name of it");
    std::fs::write(name("elsewhere"), "not ours").expect("a file");
    std::os::unix::fs::symlink("elsewhere", name("out2")).expect("a link to it");
    std::fs::set_permissions(name("out1"), PermissionsExt::from_mode(0o640)).expect("chmod");
    // Where an earlier tscap wrote headers: whoever opens it waits for a reader.
    nix::unistd::mkfifo(&name("out3.part"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).with(["-C", "1k"]).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..60, 0);
    let finished = capture.stop();
    finished.success();
    let (summary, recordings) = check(&finished);
    check_frames(&recordings, &frame, 0..60);
    assert_eq!(summary.files.expect("several files").replaced, 2);
    assert_eq!(files::length(&name("kept")), 1_000_000);
    let modes = ["out", "out1", "out2", "out3"].map(|it| files::mode(&name(it)));
    assert_eq!(modes, [0o600, 0o640, 0o600, 0o600]);
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

/// Two rotations over one set of names: the second one does not take what the first writes.
#[test]
fn a_name_that_another_capture_writes_is_not_taken() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("two-rings");
    let folder = files::folder();
    let path = folder.path().join("out");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let rotating = |more: &[&str]| capture_on(&bench.rx, &path).with(["-C", "1k"]).with(more);
    let first = rotating(&[]).ready();
    socket.send(&frame, 0..20, 0);
    first.wait_event("file");
    // An error where a file has got another name meanwhile.
    let is_locked = |path| std::fs::File::open(path).map(|file| file.try_lock().is_err());
    // Two of them, until the one that is full is closed.
    until("the one that is written to be locked alone", LIMIT, || {
        let entries = std::fs::read_dir(folder.path()).expect("the folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let locked: Vec<_> = paths.map(is_locked).collect::<Result<_, _>>().ok()?;
        let count = locked.into_iter().filter(|is_locked| *is_locked).count();
        (count == 1).then_some(())
    });
    first.stop().success();
    let held = std::fs::File::create(folder.path().join("out1")).expect("a file");
    held.try_lock().expect("nobody writes it any more");
    let second = rotating(&[]).ready();
    socket.send(&frame, 0..20, 0);
    let finished = second.wait();
    finished.failure(
        1,
        &["cannot begin the next file", "out1", "another capture"],
    );
}
