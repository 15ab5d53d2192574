//! `-z`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tscap_capture::CommandsSummary;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::root::{root, root_with};

use super::together::{check, check_frames, names};

fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("command");
    files::make_script(&path, &format!("#!/bin/sh\n{text}\n"));
    path
}

#[test]
fn every_file_is_compressed_also_the_last() {
    let programs = ["ip", "ethtool", "gzip", "capinfos"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("gzip");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let plan = capture_on(&bench.rx, &path).with(["-b", "packets:10", "-z", "gzip"]);
    let capture = plan.ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..95, 0);
    let finished = capture.stop();
    let reported = finished.success().files.expect("several files");
    assert_eq!((reported.written, reported.removed), (10, 0));
    let all = CommandsSummary {
        succeeded: 10,
        failed: 0,
        unfinished: 0,
    };
    assert_eq!(reported.commands, Some(all));
    let names = names(folder.path());
    assert_eq!(names.len(), 10);
    for (number, name) in names.iter().enumerate() {
        assert!(name.ends_with(".pcapng.gz"), "{names:?}");
        let frames = if number == 9 { 5 } else { 10 };
        assert_eq!(peers::capinfos_count(&folder.path().join(name)), frames);
    }
}

#[test]
fn a_failing_command_is_told_and_the_capture_goes_on() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("failing");
    let (folder, programs) = (files::folder(), files::folder());
    // What it says must not be among the JSON lines.
    let command = script(programs.path(), "echo said; case $1 in *1) exit 7;; esac");
    let path = folder.path().join("out");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let plan = capture_on(&bench.rx, &path).with(["-C", "10k", "-z"]);
    let capture = plan.with([&command]).ready();
    // The command for the second file fails before the last frames come.
    let socket = PacketSocket::open(&bench.tx);
    socket.send(&frame, 0..35, 0);
    capture.wait_event("command_failed");
    socket.send(&frame, 35..60, 0);
    let finished = capture.stop();
    let (summary, recordings) = check(&finished);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    check_frames(&recordings, &frame, 0..60);
    let failed = finished.events("command_failed");
    let reported = summary.files.expect("several files");
    let expected = CommandsSummary {
        succeeded: reported.written - 1,
        failed: 1,
        unfinished: 0,
    };
    assert_eq!((reported.commands, failed.len()), (Some(expected), 1));
    assert_eq!(failed[0]["failure"], "exit status: 7");
    assert!(
        failed[0]["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("out1"))
    );
    assert!(
        finished.stderr.contains("-z failed on "),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("said") && !finished.stdout.contains("said"));
}

#[test]
fn a_command_that_is_not_there_is_refused() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("missing");
    let folder = files::folder();
    let path = folder.path().join("out");
    let plan = capture_on(&bench.rx, &path).with(["-C", "1", "-z", "no-such-program"]);
    plan.run()
        .failure(1, &["no-such-program", "no such program"]);
    let plan = capture_on(&bench.rx, &path).with(["-C", "1", "-z", "gzip -9"]);
    plan.run()
        .failure(1, &["one program", "exec gzip -9 \"$1\""]);
    assert_eq!(names(folder.path()), Vec::<String>::new());
    // One that goes away in between fails as any other.
    let programs = files::folder();
    let command = script(programs.path(), "true");
    let plan = capture_on(&bench.rx, &path).with(["-b", "packets:1", "-z"]);
    let capture = plan.with([&command]).ready();
    drop(programs);
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    PacketSocket::open(&bench.tx).send(&frame, 0..3, 0);
    let finished = capture.stop();
    let reported = finished.success().files.expect("several files");
    assert_eq!(reported.commands.map(|commands| commands.failed), Some(3));
}

/// The first Ctrl-C ends the capture and spares the commands, a second one ends
/// the wait for them.
#[test]
fn a_command_outlives_the_capture_only_after_a_second_signal() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("outlives");
    let (folder, programs) = (files::folder(), files::folder());
    let go_on = programs.path().join("go-on");
    // For half a minute at most, should the test fail.
    let text = format!(
        "echo begun; for i in $(seq 3000); do [ -e {} ] && exit; sleep 0.01; done",
        go_on.display()
    );
    let command = script(programs.path(), &text);
    let path = folder.path().join("out");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    for is_second in [false, true] {
        let _ = std::fs::remove_file(&go_on);
        let plan = capture_on(&bench.rx, &path).with(["-b", "packets:5", "-z"]);
        let capture = plan.with([&command]).ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..8, 0);
        capture.wait_line("begun");
        capture.signal(Signal::SIGINT);
        let first = Instant::now();
        capture.wait_event_with("file", |file| file["frames"] == 3);
        if is_second {
            // Signals within half a second of the first are one request.
            let apart = Duration::from_millis(600);
            std::thread::sleep(apart.saturating_sub(first.elapsed()));
            capture.signal(Signal::SIGINT);
            capture.wait_line("warning: not ended: 2 commands");
        }
        // They hold standard error open, which is read to its end.
        std::fs::write(&go_on, "").expect("let them go on");
        let finished = capture.wait();
        let (summary, _) = check(&finished);
        let commands = summary.files.and_then(|files| files.commands);
        let commands = commands.expect("commands are counted");
        if is_second {
            assert_eq!((finished.code, commands.unfinished), (Some(130), 2));
        } else {
            assert_eq!((finished.code, commands.succeeded), (Some(0), 2));
        }
    }
}
