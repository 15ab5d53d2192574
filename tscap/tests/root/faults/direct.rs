//! Files on a disk, written past the page cache.

use nix::sys::signal::Signal;
use tscap::{Stop, Summary};
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on, generate_on};
use tscap_testkit::files::{ImageDisk, SmallDisk, length};
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone_with, root_with};
use tscap_testkit::wait;

const TOOLS: [&str; 4] = ["ip", "ethtool", "mkfs.ext4", "mount"];
const MIB: u64 = 1 << 20;
/// A write to the disk is of at most so many bytes (`engine/output/direct.rs`).
const PIECE: u64 = 8 * MIB;

fn holds_what_it_says(recording: &Recording, summary: &Summary, frame: &Frame) {
    assert!(summary.adds_up);
    assert_eq!(recording.packets.len() as u64, summary.written);
    for packet in &recording.packets {
        frame.check(&packet.data, 0);
    }
    let statistics = recording.last_statistics(0);
    assert_eq!(statistics.delivered, Some(summary.written));
    let totals = &statistics.custom["totals"];
    assert_eq!(totals["seen"].as_u64(), Some(summary.seen));
}

#[test]
fn a_fast_capture_goes_to_the_disk_direct_and_a_slow_one_need_not() {
    let Some(_lock) = root_with(&TOOLS) else {
        return;
    };
    let bench = Bench::new("direct");
    let disk = ImageDisk::new(200);
    let frame = Frame::new(&bench.tx, &bench.rx, 1500);
    for (way, is_direct) in [("auto", true), ("direct", true), ("buffered", false)] {
        let path = disk.file("out.pcapng");
        let capture = capture_on(&bench.rx, &path).with(["--io", way]);
        let capture = capture.ready();
        LiveSender::open(&bench.tx).pour(&frame, 40_000, 0);
        let finished = capture.stop();
        let expected = if is_direct { "direct" } else { "buffered" };
        assert_eq!(finished.events("ready")[0]["io"], expected);
        let summary = finished.success();
        assert_eq!(summary.bytes_written, length(&path));
        if !is_direct {
            assert_eq!(summary.bytes_direct, 0);
        } else if way != "auto" {
            // But for what comes last. With auto, what a disk takes that has not yet shown its
            // pauses depends on the rate.
            assert!(summary.bytes_direct > summary.bytes_written / 2);
        }
        holds_what_it_says(&Recording::read(&path), &summary, &frame);
    }
    // Slowly: by way of the page cache, and in the file at once.
    let path = disk.file("slow.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    let summary = capture.stop().success();
    assert_eq!((summary.written, summary.bytes_direct), (10, 0));
    peers::agree_on(&path, 10);
}

#[test]
fn a_disk_that_fills_up_keeps_whole_blocks() {
    let Some(_lock) = root_with(&TOOLS) else {
        return;
    };
    let bench = Bench::new("direct-full");
    // Of one ring: straight from it. Disks of different sizes are full in different places.
    for (size, mebibytes) in [(60, 16), (1000, 17), (1514, 18)] {
        let disk = ImageDisk::new(mebibytes);
        let path = disk.file("out.pcapng");
        let frame = Frame::new(&bench.tx, &bench.rx, size);
        let capture = capture_on(&bench.rx, &path).with(["--io", "direct"]);
        let capture = capture.ready();
        let (_, sent) =
            LiveSender::open(&bench.tx).pour(&frame, (mebibytes << 21) / size as u64, 0);
        let finished = capture.wait();
        finished.failure(1, &[path.to_str().expect("a UTF-8 path"), "no space"]);
        let summary = finished.accounted();
        assert_eq!(summary.stopped_by, Stop::WriteError);
        assert!(summary.seen <= sent);
        assert!(summary.outcomes[Outcome::WriteFailed] > 0);
        assert_eq!(summary.bytes_written, length(&path));
        holds_what_it_says(&Recording::read(&path), &summary, &frame);
    }
}

#[test]
fn a_device_that_fails_keeps_what_it_has_taken() {
    let Some(_lock) = root_with(&TOOLS) else {
        return;
    };
    let bench = Bench::new("direct-eio");
    let disk = ImageDisk::failing(256, 20);
    let path = disk.file("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1500);
    let capture = capture_on(&bench.rx, &path).with(["--io", "direct"]);
    let capture = capture.ready();
    LiveSender::open(&bench.tx).pour(&frame, 40_000, 0);
    let finished = capture.wait();
    // By what the kernel tells of it.
    finished.failure(1, &["cannot write to"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, Stop::WriteError);
    let (recording, _) = Recording::read_torn(&path);
    // A loop device takes the last write before the error for whole that was not.
    let kept = recording.packets.len() as u64;
    let torn = summary.written.checked_sub(kept);
    let torn = torn.unwrap_or_else(|| panic!("{kept} of {}", summary.written));
    assert!(torn * 1500 <= PIECE, "{kept} of {}", summary.written);
    // Of 20 MiB the file system takes 4 for itself, and the write that failed was of one piece.
    assert!(kept * 1500 > (20 - 4 - 2) * MIB - PIECE, "{kept} frames");
}

/// Exactly what was written before the error is in the file, and the rest is counted.
#[test]
fn a_write_that_fails_loses_what_it_held_and_no_more() {
    let Some(_lock) = root_with(&[&TOOLS[..], &["strace"]].concat()) else {
        return;
    };
    let bench = Bench::new("direct-fails");
    let disk = ImageDisk::new(256);
    let path = disk.file("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1500);
    let strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"];
    let fifth = [
        "-e",
        "trace=pwrite64",
        "-e",
        "inject=pwrite64:error=EIO:when=5+",
    ];
    let plan = capture_on(&bench.rx, &path).with(["--io", "direct"]);
    let capture = plan.through([&strace[..], &fifth].concat()).ready();
    LiveSender::open(&bench.tx).pour(&frame, 40_000, 0);
    let finished = capture.wait();
    finished.failure(1, &["cannot write to", "input/output error"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, Stop::WriteError);
    assert!(summary.outcomes[Outcome::WriteFailed] > 0);
    assert!(summary.written > 500, "four writes: {}", summary.written);
    assert_eq!(summary.bytes_written, length(&path));
    holds_what_it_says(&Recording::read(&path), &summary, &frame);
}

#[test]
fn a_killed_capture_leaves_what_was_written() {
    let Some(_lock) = root_with(&TOOLS) else {
        return;
    };
    let bench = Bench::new("direct-killed");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let block = 1000 + 32;
    let mut all_direct = 0;
    for round in 1..5 {
        let disk = ImageDisk::new(256);
        let path = disk.file("out.pcapng");
        let capture = capture_on(&bench.rx, &path).with(["--io", "direct"]);
        let capture = capture.ready();
        let headers = length(&path);
        let mut sender = LiveSender::open(&bench.tx);
        std::thread::scope(|scope| {
            scope.spawn(|| sender.pour(&frame, 150_000, 0));
            // While frames pour in, each round a little later.
            wait::until("frames in the file", LIMIT, || {
                (length(&path) > headers + round * 3_000_000).then_some(())
            });
            assert_eq!(capture.stop_with(Signal::SIGKILL).signal, Some(9));
        });
        let (recording, torn) = Recording::read_torn(&path);
        let whole = headers + recording.packets.len() as u64 * block;
        let length = length(&path);
        assert!(
            (whole..whole + block).contains(&length),
            "{torn:?}: {whole} of {length} bytes"
        );
        for packet in &recording.packets {
            frame.check(&packet.data, 0);
        }
        all_direct += u64::from(length.is_multiple_of(4096));
        assert_eq!(bench.rx.xdp_program(), None);
    }
    // By way of the page cache that would be one in 4096.
    assert!(all_direct > 0, "no file ends with a block of the disk");
}

#[test]
fn where_there_is_no_disk_direct_writes_are_refused() {
    let Some(_lock) = root_with(&TOOLS) else {
        return;
    };
    let bench = Bench::new("direct-none");
    let memory = SmallDisk::new(1 << 20);
    let path = memory.file("out.pcapng");
    let refused = capture_on(&bench.rx, &path).with(["--io", "direct"]).run();
    refused.failure(
        1,
        &[
            "direct",
            "--io direct",
            path.to_str().expect("a UTF-8 path"),
        ],
    );
    assert!(!path.exists() || length(&path) == 0);
    assert_eq!(bench.rx.xdp_program(), None);
    let capture = capture_on(&bench.rx, &path).ready();
    let finished = capture.stop();
    assert_eq!(finished.events("ready")[0]["io"], "buffered");
    finished.success();
}

/// A ring holds 0.2 s of this, and a direct write takes 0.3 s: none is lost, because a disk that has
/// not shown for three seconds that it does not pause gets it all by way of the page cache.
#[test]
fn a_disk_that_pauses_loses_nothing_that_the_page_cache_keeps() {
    const FRAMES: u64 = 120_000;
    let why = "others would take the CPUs for longer than a ring lasts";
    let Some(_lock) = alone_with(why, &[&TOOLS[..], &["strace"]].concat()) else {
        return;
    };
    let bench = Bench::new("direct-pauses");
    let disk = ImageDisk::new(256);
    let strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"];
    let pauses = [
        "-e",
        "trace=pwrite64",
        "-e",
        "inject=pwrite64:delay_exit=300000",
    ];
    let count = FRAMES.to_string();
    let paced = ["--rate", "60k", "--size", "1400", "--count", &count];
    for (way, is_spilled) in [("buffered", false), ("auto", true)] {
        let path = disk.file("out.pcapng");
        let plan = capture_on(&bench.rx, &path).with(["--io", way, "--ring-size", "16M"]);
        let plan = plan.with(["-c", &count]);
        let capture = plan.through([&strace[..], &pauses].concat()).ready();
        let sent = generate_on(&bench.tx).with(paced).run();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let summary = capture.wait().success();
        assert_eq!(summary.written, FRAMES, "{way}: {:?}", summary.outcomes);
        let reported = summary.disk.expect("a disk");
        assert!(
            reported.has_all && (reported.spilled_bytes > 0) == is_spilled,
            "{way}: {reported:?}"
        );
        assert_eq!(Recording::read(&path).packets.len() as u64, FRAMES);
    }
}
