//! Signals finish the file; a second one aborts what hangs.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};

#[test]
fn ctrl_c_right_after_the_last_frame_loses_none() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ctrl-c");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    // The time before the signal is what is tested: 10 ms as the promise has it, and none.
    for pause in [10; 15].into_iter().chain([0; 5]) {
        let capture = capture_on(&bench.rx, &path).ready();
        socket.send(&frame, 0..100, 0);
        std::thread::sleep(Duration::from_millis(pause));
        let finished = capture.stop();
        assert_eq!(
            (finished.success().seen, finished.success().written),
            (100, 100)
        );
        assert_eq!(Recording::read(&path).packets.len(), 100);
    }
}

#[test]
fn term_and_hup_finish_the_file() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("term");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let capture = capture_on(&bench.rx, &path).ready();
        socket.send(&frame, 0..10, 0);
        let finished = capture.stop_with(signal);
        assert_eq!(finished.success().stopped_by, Stop::Signal);
        let recording = Recording::read(&path);
        assert_eq!(recording.packets.len(), 10);
        assert_eq!(recording.last_statistics(0).delivered, Some(10));
        assert_eq!(bench.rx.xdp_program(), None);
    }
}

/// As coreutils' `timeout` sends them: to its child, and then to the child's group.
#[test]
fn two_signals_at_once_are_one() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("twice");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let pairs = [
        (Signal::SIGINT, Signal::SIGINT),
        (Signal::SIGTERM, Signal::SIGINT),
        (Signal::SIGHUP, Signal::SIGTERM),
    ];
    for (first, second) in pairs {
        for pause in 1..=10 {
            let mut capture = capture_on(&bench.rx, &path).ready();
            socket.send(&frame, 0..100, 0);
            capture.signal(first);
            // The time between the two is what is tested.
            std::thread::sleep(Duration::from_millis(pause));
            if !capture.has_ended() {
                capture.signal(second);
            }
            let summary = capture.wait().success();
            assert_eq!((summary.seen, summary.written), (100, 100), "{pause} ms");
        }
    }
    assert_eq!(Recording::read(&path).packets.len(), 100);
}

#[test]
fn the_timeout_of_coreutils_loses_nothing() {
    let programs = ["ip", "ethtool", "timeout"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("timeout");
    let folder = files::folder();
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    for number in 0..3 {
        let path = folder.path().join(number.to_string());
        let capture = capture_on(&bench.rx, &path)
            .through(["timeout", "-s", "INT", "600"])
            .ready();
        socket.send(&frame, 0..100, 0);
        // As from its own timer, however long the start took.
        capture.signal(Signal::SIGALRM);
        let finished = capture.wait();
        // That of timeout itself.
        assert_eq!(finished.code, Some(124), "{}", finished.stderr);
        let summary = finished.accounted();
        assert_eq!((summary.seen, summary.written), (100, 100));
        assert!(!finished.stderr.contains("aborted"), "{}", finished.stderr);
        let recording = Recording::read(&path);
        assert_eq!(recording.packets.len(), 100);
        assert_eq!(recording.last_statistics(0).delivered, Some(100));
    }
}

#[test]
fn a_second_ctrl_c_aborts_a_capture_that_hangs_on_its_output() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("abort");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let (reader, writer) = std::io::pipe().expect("a pipe");

    let plan = capture(&bench.rx.netns).on(&bench.rx).with(["-w", "-"]);
    let mut capture = plan.stdout(writer).ready();
    // Nobody reads: far more than a pipe holds, so that the converter blocks.
    PacketSocket::open(&bench.tx).send(&frame, 0..2000, 0);
    capture.ctrl_c_until_the_end();
    let finished = capture.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    let summary = finished.accounted();
    assert_eq!(summary.seen, 2000);
    assert!(summary.outcomes[Outcome::WriteFailed] > 1000, "{summary:?}");
    assert_eq!(bench.rx.xdp_program(), None);
    drop(reader);
}

/// A frame or none: what can't be written is the statistics at the end.
#[test]
fn a_second_ctrl_c_aborts_the_last_statistics_too() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("abort-last");
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut filler = writer.try_clone().expect("another end of the pipe");
    let plan = capture(&bench.rx.netns).on(&bench.rx).with(["-w", "-"]);
    let mut capture = plan.stdout(writer).ready();
    let mut headers = vec![0; 4096];
    let length = std::io::Read::read(&mut reader, &mut headers);
    assert!(length.expect("read the headers") > 0);
    files::fill(&mut filler);
    capture.ctrl_c_until_the_end();
    let finished = capture.wait();
    assert_eq!(finished.code, Some(130), "{}", finished.stderr);
    assert_eq!(finished.accounted().seen, 0);
}

/// Signals come all the time, but the writing goes on.
#[test]
fn no_number_of_ctrl_c_aborts_a_capture_whose_reader_is_slow() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("slow-reader");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let plan = capture(&bench.rx.netns).on(&bench.rx).with(["-w", "-"]);
    let mut capture = plan.stdout(writer).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1500, 0);
    let slow = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            match std::io::Read::read(&mut reader, &mut piece).expect("read the pipe") {
                0 => return all,
                length => all.extend_from_slice(&piece[..length]),
            }
            // So slow is the reader.
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    capture.ctrl_c_until_the_end();
    let finished = capture.wait();
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (1500, 1500));
    assert!(
        finished.stderr.contains("still writing"),
        "{}",
        finished.stderr
    );
    std::fs::write(&path, slow.join().expect("the reader")).expect("write a file");
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 1500);
    assert_eq!(recording.last_statistics(0).delivered, Some(1500));
}

#[test]
fn a_signal_before_anything_has_come_leaves_a_valid_empty_file() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("empty");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path).ready().stop();
    assert_eq!(
        (finished.success().seen, finished.success().written),
        (0, 0)
    );
    let recording = Recording::read(&path);
    assert_eq!(
        (recording.packets.len(), recording.interfaces.len()),
        (0, 1)
    );
    assert_eq!(recording.last_statistics(0).received, Some(0));
}

#[test]
fn a_signal_during_the_start_leaves_nothing_behind() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("early");
    let before = bench.rx.offloads();
    let folder = files::folder();
    for pause in (0..200).step_by(20) {
        let path = folder.path().join(pause.to_string());
        let capture = capture_on(&bench.rx, &path)
            .with(["--offloads", "off"])
            .start();
        // The time of the signal is what is tested.
        std::thread::sleep(Duration::from_millis(pause));
        let finished = capture.stop();
        // Killed before it could catch the signal, or ended in order.
        assert!(
            finished.signal == Some(2) || finished.code == Some(0),
            "after {pause} ms: {finished:?}"
        );
        assert_eq!(bench.rx.xdp_program(), None);
        assert_eq!(bench.rx.promiscuity(), 0);
        assert_eq!(bench.rx.offloads(), before);
        if path.exists() {
            assert_eq!(Recording::read(&path).statistics.len(), 1);
        }
    }
}

/// Nobody reads the JSON lines, and the pipe is full: signals are heeded and the
/// file is finished all the same.
#[test]
fn a_full_pipe_of_json_lines_holds_up_nobody() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("json-full");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let (reader, writer) = files::full_pipe();
    let capture = capture_on(&bench.rx, &path).stdout(writer).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let asked = Instant::now();
    let finished = capture.stop();
    assert!(asked.elapsed() < Duration::from_secs(10), "not at once");
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let reported = finished
        .stderr
        .contains("warning: nobody reads standard output");
    assert!(reported, "{}", finished.stderr);
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 100);
    assert_eq!(recording.last_statistics(0).delivered, Some(100));
    assert_eq!(bench.rx.xdp_program(), None);
    drop(reader);
}
