//! The disk fills up in mid-capture.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap::Stop;
use tscap::Summary;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture, capture_on};
use tscap_testkit::files::{ImageDisk, SmallDisk, length};
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

/// By way of the page cache errors come later than the write: the account says what is not known.
#[test]
fn what_a_disk_did_not_take_behind_the_page_cache_is_told() {
    let Some(_lock) = root_with(&["ip", "ethtool", "mkfs.ext4", "mount"]) else {
        return;
    };
    let bench = Bench::new("disk-late");
    let disk = ImageDisk::failing(256, 20);
    let path = disk.file("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1500);
    let capture = capture_on(&bench.rx, &path).with(["--io", "buffered"]);
    let capture = capture.ready();
    LiveSender::open(&bench.tx).pour(&frame, 40_000, 0);
    // It may have ended by itself.
    let finished = capture.stop();
    finished.failure(1, &["the disk did not take all", "dmesg"]);
    let summary = finished.accounted();
    assert!(summary.adds_up && !summary.disk.expect("a disk").has_all);
    assert_eq!(bench.rx.xdp_program(), None);
}

fn strace<'a>(inject: &'a str, call: &'a str) -> Vec<&'a str> {
    let strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"];
    [&strace[..], &["-e", call, "-e", inject]].concat()
}

/// Ctrl-C for what strace runs, which heeds no signal itself.
fn interrupt(capture: &Capture) {
    let strace = capture.pid();
    let children = format!("/proc/{strace}/task/{strace}/children");
    let children = std::fs::read_to_string(children).expect("strace's children");
    let tscap = children.split_whitespace().next().expect("tscap");
    let tscap = Pid::from_raw(tscap.parse().expect("a number"));
    kill(tscap, Signal::SIGINT).expect("send SIGINT");
}

/// The last to tell of an error is the wait for the disk, also for each of several files.
#[test]
fn a_disk_that_fails_at_the_end_is_told() {
    let Some(_lock) = root_with(&["ip", "ethtool", "strace"]) else {
        return;
    };
    let bench = Bench::new("disk-end");
    let folder = on_disk();
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let fails = strace("inject=fdatasync:error=EIO", "trace=fdatasync");
    for options in [&[][..], &["-b", "packets:4"]] {
        let path = folder.path().join("out.pcapng");
        let capture = capture_on(&bench.rx, &path).with(options).through(&fails);
        let capture = capture.ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
        // The first of several may end the capture, whose account holds all the same.
        interrupt(&capture);
        let finished = capture.wait();
        finished.failure(1, &["the disk did not take all", "input/output error"]);
        let summary = finished.accounted();
        assert!(!summary.disk.expect("a disk").has_all, "{options:?}");
    }
    // One that takes it all.
    let path = folder.path().join("whole.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    assert!(capture.stop().success().disk.expect("a disk").has_all);
    let memory = SmallDisk::new(1 << 20);
    let capture = capture_on(&bench.rx, &memory.file("out.pcapng")).ready();
    assert_eq!(capture.stop().success().disk, None);
}

#[test]
fn a_disk_that_takes_its_time_is_left_when_the_end_is_asked_for_again() {
    let Some(_lock) = root_with(&["ip", "ethtool", "strace"]) else {
        return;
    };
    let bench = Bench::new("disk-slow");
    let folder = on_disk();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    // strace holds the thread for so long also when the process has ended.
    let hangs = strace("inject=fdatasync:delay_enter=12000000", "trace=fdatasync");
    let capture = capture_on(&bench.rx, &path).through(hangs).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    interrupt(&capture);
    capture.wait_line("note: waiting until the disk has everything");
    interrupt(&capture);
    let finished = capture.wait();
    finished.failure(130, &["the disk was not waited for", "not known"]);
    let summary = finished.accounted();
    assert_eq!(summary.written, 10);
    assert!(!summary.disk.expect("a disk").has_all);
    assert_eq!(Recording::read(&path).packets.len(), 10);
}

/// A folder beside the sources: a temporary one may be in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}
