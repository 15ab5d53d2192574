//! What signals ask of a capture: to end, to say how far it is, to begin the next file. Those
//! that were ignored when it began are.

use nix::sys::signal::{Signal, kill};
use tscap::Stop;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;

/// By its number: nix knows no signals of real time.
fn send(capture: &Capture, number: i32) {
    let command = format!("kill -{number} {}", capture.pid());
    tscap_testkit::command::must(std::process::Command::new("sh").args(["-c", &command]));
}

/// The default action of each would have cut the file in the middle of a block.
#[test]
fn what_ends_other_programs_ends_it_in_order() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ends");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let named = [
        Signal::SIGQUIT,
        Signal::SIGALRM,
        Signal::SIGSTKFLT,
        Signal::SIGXCPU,
        Signal::SIGVTALRM,
        Signal::SIGPROF,
        Signal::SIGIO,
        Signal::SIGPWR,
    ];
    // SIGRTMIN and SIGRTMAX.
    for number in named.map(|it| it as i32).into_iter().chain([34, 64]) {
        let capture = capture_on(&bench.rx, &path).ready();
        socket.send(&frame, 0..10, 0);
        send(&capture, number);
        let finished = capture.wait();
        assert_eq!(finished.success().stopped_by, Stop::Signal, "{number}");
        let recording = Recording::read(&path);
        assert_eq!(recording.packets.len(), 10, "{number}");
        assert_eq!(recording.last_statistics(0).delivered, Some(10));
    }
}

#[test]
fn counts_are_told_when_they_are_asked_for() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("counts");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    // While it starts too: it is told once it is ready.
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    capture.signal(Signal::SIGUSR1);
    let counts = capture.wait_event_with("counts", |it| it["seen"] == 100);
    assert_eq!(counts["drops"], 0, "{counts}");
    capture.signal(Signal::SIGUSR1);
    let line = capture.wait_line("so far: ");
    assert!(line.contains(" s: 100 seen, "), "{line}");
    // At the end there is nobody to answer.
    capture.signal(Signal::SIGINT);
    let _ = kill(
        nix::unistd::Pid::from_raw(capture.pid().cast_signed()),
        Signal::SIGUSR1,
    );
    let summary = capture.wait().success();
    assert_eq!((summary.seen, summary.written), (100, 100));
}

/// What came before the request is in the file that ends with it.
#[test]
fn the_next_file_begins_on_request() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("next");
    let folder = files::folder();
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    // -C, dumpcap's -b, and -G with a time in the name.
    let plans: [(&str, &[&str]); 3] = [
        ("c.pcapng", &["-C", "1000"]),
        ("b.pcapng", &["-b", "filesize:1000000"]),
        ("g-%H%M%S.pcapng", &["-G", "3600"]),
    ];
    for (name, plan) in plans {
        let path = folder.path().join(name);
        let capture = capture_on(&bench.rx, &path).with(plan).ready();
        let (mut from, mut begun) = (0, Vec::new());
        for frames in [7, 5] {
            socket.send(&frame, from..from + frames, 0);
            from += frames;
            capture.signal(Signal::SIGUSR1);
            capture.wait_event_with("counts", |it| it["seen"] == from);
            capture.signal(Signal::SIGUSR2);
            let event = capture.wait_event_with("flushed", |it| {
                // Names by the second differ from the next second on.
                if it["next_file"].is_null() {
                    capture.signal(Signal::SIGUSR2);
                }
                !it["next_file"].is_null() && !begun.contains(&it["next_file"])
            });
            begun.push(event["next_file"].clone());
            if name.starts_with('g') {
                break;
            }
        }
        socket.send(&frame, from..from + 3, 0);
        let finished = capture.stop();
        let written = finished.success().written;
        let frames: Vec<_> = finished.files().iter().map(|it| it.frames).collect();
        if name.starts_with('g') {
            assert_eq!((&frames[..], written), (&[7, 3][..], 10))
        } else {
            assert_eq!((&frames[..], written), (&[7, 5, 3][..], 15))
        }
        for file in finished.files() {
            let recording = Recording::read(&file.path);
            assert_eq!(recording.packets.len() as u64, file.frames);
        }
    }
}

/// A reader finds in the file what was captured by then, and it goes on.
#[test]
fn one_file_is_flushed_on_request() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("flush");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).ready();
    for frames in [3, 6] {
        socket.send(&frame, frames - 3..frames, 0);
        capture.signal(Signal::SIGUSR1);
        capture.wait_event_with("counts", |it| it["seen"] == frames);
        let known = std::fs::metadata(&path).expect("the file").len();
        capture.signal(Signal::SIGUSR2);
        capture.wait_event_with("flushed", |_| {
            std::fs::metadata(&path).is_ok_and(|file| file.len() >= known)
                && Recording::read(&path).packets.len() as u64 == frames
        });
    }
    assert_eq!(capture.stop().success().written, 6);
    assert_eq!(Recording::read(&path).packets.len(), 6);
}

/// As nohup(1) and shells without job control start commands.
#[test]
fn signals_that_were_ignored_stay_so() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("nohup");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let ignoring = ["sh", "-c", "trap '' HUP USR1 RTMIN; exec \"$@\"", "sh"];
    let capture = capture_on(&bench.rx, &path).through(ignoring).ready();
    for number in [Signal::SIGHUP as i32, Signal::SIGUSR1 as i32, 34] {
        send(&capture, number);
    }
    // Behind all of those: a request is answered in their order.
    capture.signal(Signal::SIGUSR2);
    capture.wait_event("flushed");
    let finished = capture.stop_with(Signal::SIGTERM);
    assert_eq!(finished.success().stopped_by, Stop::Signal);
    assert!(finished.events("counts").is_empty(), "{}", finished.stdout);
}
