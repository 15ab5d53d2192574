//! `-w -`: the file goes to a pipe.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::stat::Mode;
use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Plan, capture};
use tscap_testkit::command::{SHORT, finish};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};

const COUNT: u64 = 500;

fn capture_to_pipe(port: &Port) -> Plan<'_> {
    capture(&port.netns).on(port).with(["-w", "-"])
}

/// Captures into the standard input of `reader`, which writes a line a packet.
fn check_reader(tag: &str, name: &str, mut reader: Command) {
    let bench = Bench::new(tag);
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    reader
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = reader
        .spawn()
        .unwrap_or_else(|e| panic!("start {name}: {e}"));
    let pipe = child.stdin.take().expect("piped");

    let capture = capture_to_pipe(&bench.rx).stdout(pipe).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..COUNT, 0);
    let finished = capture.stop();
    assert_eq!(finished.success().written, COUNT);
    let done = finish(child, name, SHORT);
    assert!(done.status.success(), "{name}: {}", done.stderr);
    // tcpdump adds lines with the bytes, behind a tab.
    let packets = done.stdout.lines().filter(|line| !line.starts_with('\t'));
    assert_eq!(packets.count() as u64, COUNT, "{name}: {}", done.stderr);
}

#[test]
fn tshark_reads_the_pipe() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tshark"]) else {
        return;
    };
    check_reader("tshark", "tshark", peers::tshark_on_pipe());
}

#[test]
fn tcpdump_reads_the_pipe() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tcpdump"]) else {
        return;
    };
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-nt", "-r", "-"]);
    check_reader("tcpdump", "tcpdump", tcpdump);
}

#[test]
fn the_pipe_is_not_kept_waiting() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("prompt");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let capture = capture_to_pipe(&bench.rx).stdout(writer).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1, 0);
    // The frame comes out while the capture goes on, without any other frame
    // to push it.
    let (tell, reported) = std::sync::mpsc::channel();
    let wanted = frame.bytes(0);
    std::thread::spawn(move || {
        let mut bytes: Vec<u8> = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut chunk) {
            bytes.extend(&chunk[..length]);
            if bytes.windows(wanted.len()).any(|window| window == wanted) {
                let _ = tell.send(());
            }
        }
    });
    reported
        .recv_timeout(Duration::from_secs(5))
        .expect("the frame within five seconds");
    capture.stop().success();
}

#[test]
fn a_reader_that_goes_away_is_success() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("gone");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let mut head = Command::new("head")
        .args(["-c", "5000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("start head");
    let pipe = head.stdin.take().expect("piped");

    let capture = capture_to_pipe(&bench.rx).stdout(pipe).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1000, 0);
    assert!(head.wait().expect("head ends").success());
    // The capture learns of it at its next write at the latest.
    PacketSocket::open(&bench.tx).send(&frame, 1000..1010, 0);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let summary = finished.success();
    assert_eq!(summary.stopped_by, Stop::ReaderGone);
    assert_eq!(summary.outcomes[Outcome::WriteFailed], 0);
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn a_reader_that_is_gone_when_the_capture_ends_is_success() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("idle-gone");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let capture = capture_to_pipe(&bench.rx).stdout(writer).ready();
    // Nothing flows, so nothing is written before the last statistics.
    drop(reader);
    let finished = capture.stop();
    finished.success();
    assert!(!finished.stderr.contains("tscap: "), "{}", finished.stderr);
}

#[test]
fn a_reader_that_never_was_is_success() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("never");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let finished = capture_to_pipe(&bench.rx).stdout(writer).run();
    assert_eq!(finished.success().stopped_by, Stop::ReaderGone);
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn a_slow_reader_costs_frames_but_not_the_accounting() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("slow");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let capture = capture_to_pipe(&bench.rx)
        .with(["--ring-size", "128K"])
        .stdout(writer)
        .ready();
    let sent = PacketSocket::open(&bench.tx).send(&frame, 0..5000, 0);
    // Only now does anybody read.
    let drain = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("read the pipe");
        bytes
    });
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!(summary.seen, sent);
    assert!(
        summary.outcomes[Outcome::RingFull] > 0,
        "{:?}",
        summary.outcomes
    );
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // The pipe has ended with the capture, so the reader ends too.
    std::fs::write(&path, drain.join().expect("the reader")).expect("keep what came");
    assert_eq!(Recording::read(&path).packets.len() as u64, summary.written);
}

#[test]
fn a_named_pipe_is_written_once_somebody_reads_it() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("fifo");
    let folder = files::folder();
    let (pipe, copy) = (folder.path().join("pipe"), folder.path().join("out.pcapng"));
    nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("make a named pipe");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let capture = capture(&bench.rx.netns).on(&bench.rx).to(&pipe).start();
    capture.wait_line("note: waiting for a reader");
    let (from, to) = (pipe.clone(), copy.clone());
    let reader = std::thread::spawn(move || {
        let bytes = std::fs::read(from).expect("read the pipe");
        std::fs::write(to, bytes).expect("keep what came");
    });
    capture.wait_ready();
    // More than a pipe holds: the converter must wait for its reader.
    PacketSocket::open(&bench.tx).send(&frame, 0..1000, 0);
    assert_eq!(capture.stop().success().written, 1000);
    reader.join().expect("the reader");
    assert_eq!(Recording::read(&copy).packets.len(), 1000);
}
