//! The disk fills up in mid-capture.

use tscap::Stop;
use tscap::Summary;
use tscap::capturing::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files::{SmallDisk, length};
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};

const PEERS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

#[test]
fn the_file_ends_with_its_last_whole_block() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("disk");
    // Frame lengths with every remainder of the disk's size by the block's.
    for size in [60, 1000, 1514] {
        let disk = SmallDisk::new(1 << 20);
        let path = disk.file("out.pcapng");
        let frame = Frame::new(&bench.tx, &bench.rx, size);
        let capture = capture_on(&bench.rx, &path).ready();
        let sent = PacketSocket::open(&bench.tx).send(&frame, 0..(3 << 20) / size as u64, 0);
        let finished = capture.wait();

        finished.failure(1, &[path.to_str().expect("a UTF-8 path"), "no space"]);
        let summary = finished.accounted();
        assert_eq!(summary.stopped_by, Stop::WriteError);
        assert!(summary.seen <= sent);
        assert!(
            summary.outcomes[Outcome::WriteFailed] > 0,
            "{:?}",
            summary.outcomes
        );
        assert_eq!(
            summary.outcomes[Outcome::AfterStop],
            0,
            "{:?}",
            summary.outcomes
        );
        let recording = Recording::read(&path);
        assert_eq!(recording.packets.len() as u64, summary.written);
        ends_with_the_account(&recording, &summary);
        for (number, packet) in recording.packets.iter().enumerate() {
            frame.check(&packet.data, number as u64);
        }
        assert!(
            length(&path) > (1 << 20) - 600_000,
            "{} bytes are a lot less",
            length(&path)
        );
        assert_eq!(summary.bytes_written, length(&path));
        peers::agree_on(&path, summary.written);
        assert_eq!(bench.rx.xdp_program(), None);
    }
}

#[test]
fn a_disk_that_fills_up_flat_out_keeps_the_accounting() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("disk-live");
    let disk = SmallDisk::new(8 << 20);
    let path = disk.file("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut sender = LiveSender::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).ready();
    let (_, sent) = sender.pour(&frame, 500_000, 0);
    let finished = capture.wait();
    finished.failure(1, &["no space"]);
    // What came after detaching is not seen.
    let summary = finished.accounted();
    assert!(summary.seen <= sent, "{} of {sent}", summary.seen);
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len() as u64, summary.written);
    ends_with_the_account(&recording, &summary);
}

/// Room for it was kept.
#[track_caller]
fn ends_with_the_account(recording: &Recording, summary: &Summary) {
    let statistics = recording.last_statistics(0);
    assert_eq!(statistics.delivered, Some(summary.written));
    let totals = &statistics.custom["totals"];
    assert_eq!(totals["seen"].as_u64(), Some(summary.seen));
}

#[test]
fn a_file_size_limit_is_a_full_disk() {
    let Some(_lock) = root_with(&["ip", "ethtool", "prlimit"]) else {
        return;
    };
    let bench = Bench::new("fsize");
    let folder = tscap_testkit::files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let plan = capture_on(&bench.rx, &path).through(["prlimit", "--fsize=100000"]);
    let capture = plan.ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1000, 0);
    let finished = capture.wait();
    finished.failure(1, &["too large"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, Stop::WriteError);
    assert_eq!(Recording::read(&path).packets.len() as u64, summary.written);
}

#[test]
fn a_full_disk_behind_standard_output() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("disk-out");
    let disk = SmallDisk::new(1 << 20);
    let path = disk.file("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let file = std::fs::File::create(&path).expect("a file on the disk");
    let capture = capture(&bench.rx.netns)
        .on(&bench.rx)
        .with(["-w", "-"])
        .stdout(file)
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..3000, 0);
    let finished = capture.wait();
    finished.failure(1, &["standard output", "no space"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, Stop::WriteError);
    assert_eq!(summary.bytes_written, length(&path));
    // As with `-w FILE`: it ends with the last whole frame.
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len() as u64, summary.written);
    ends_with_the_account(&recording, &summary);
    assert_eq!(bench.rx.xdp_program(), None);
}
