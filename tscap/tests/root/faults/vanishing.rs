//! The interface changes under a running capture.

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::port::Port;
use tscap_testkit::process;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};
use tscap_testkit::wait::until;

const PEERS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

#[test]
fn a_deleted_interface_ends_the_capture_and_the_file_is_whole() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("deleted");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).ready();
    let sent = PacketSocket::open(&bench.tx).send(&frame, 0..1000, 0);
    bench.rx.netns.ip(&["link", "del", "rx0"]);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("rx0"), "{}", finished.stderr);
    let summary = finished.accounted();
    assert_eq!((summary.seen, summary.written), (sent, sent));
    assert_eq!(summary.stopped_by, Stop::InterfaceGone);
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 1000);
    assert_eq!(recording.last_statistics(0).delivered, Some(1000));
    peers::agree_on(&path, 1000);
}

#[test]
fn one_of_two_interfaces_is_deleted_and_the_other_goes_on() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("one-deleted");
    let (tx1, rx1) = bench.add_pair(1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frames = [
        Frame::new(&bench.tx, &bench.rx, 60),
        Frame::new(&tx1, &rx1, 60),
    ];
    let capture = capture_on(&bench.rx, &path).on(&rx1).ready();
    PacketSocket::open(&bench.tx).send(&frames[0], 0..100, 0);
    bench.rx.netns.ip(&["link", "del", "rx0"]);
    capture.wait_line("tscap: interface rx0");
    PacketSocket::open(&tx1).send(&frames[1], 0..200, 0);
    let finished = capture.stop();
    let summary = finished.accounted();
    let written: Vec<u64> = summary.interfaces.iter().map(|it| it.written).collect();
    assert_eq!(written, [100, 200]);
    assert_eq!(Recording::read(&path).packets.len(), 300);
    assert_eq!(rx1.xdp_program(), None);
}

#[test]
fn down_and_up_again_goes_on() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("down-up");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).ready();
    socket.send(&frame, 0..100, 0);
    bench.rx.set(&["down"]);
    // Long enough for tscap to look at it, of which it says nothing.
    std::thread::sleep(Duration::from_millis(500));
    bench.rx.set(&["up"]);
    bench.rx.wait_up();
    bench.tx.wait_up();
    // A socket of its own: the first one has seen the link go down.
    PacketSocket::open(&bench.tx).send(&frame, 100..300, 0);
    let finished = capture.stop();
    assert_eq!(finished.success().written, 300);
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 300);
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn a_move_to_another_namespace_never_hangs() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("moved");
    // rx0 must take a new number there.
    let elsewhere = without_number("elsewhere", bench.rx.index);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let moved = move_to(&bench, &bench.rx, &elsewhere);
    assert_ne!(moved.index, bench.rx.index);
    PacketSocket::open(&bench.tx).send(&frame, 100..300, 0);
    // Finished by itself or going on: both are fine; then the signal may miss it. Nothing
    // tells that it goes on.
    std::thread::sleep(Duration::from_millis(500));
    let finished = capture.stop();
    let summary = finished.accounted();
    assert!(matches!(finished.code, Some(0 | 1)), "{}", finished.stderr);
    let expected = if summary.stopped_by == Stop::Signal {
        300
    } else {
        100
    };
    assert!(summary.written >= expected, "{summary:?}");
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len() as u64, summary.written);
    for (number, packet) in recording.packets.iter().enumerate() {
        frame.check(&packet.data, number as u64);
    }
    assert_eq!(
        moved.xdp_program(),
        None,
        "nothing stays attached there either"
    );
}

/// A namespace in which this number is taken.
fn without_number(tag: &str, number: u32) -> Arc<Netns> {
    let netns = Arc::new(Netns::new(tag));
    let number = number.to_string();
    netns.ip(&["link", "add", "filler0", "index", &number, "type", "bridge"]);
    netns
}

/// Moves the receiving interface, and waits until frames reach it there.
fn move_to(bench: &Bench, rx: &Port, netns: &Arc<Netns>) -> Port {
    rx.set(&["netns", netns.name()]);
    let moved = Port::find(netns, &rx.name);
    moved.set(&["up"]);
    moved.wait_up();
    bench.tx.wait_up();
    moved
}

/// What an interface lost under a number counts once, also when it gets that
/// number back.
#[test]
fn losses_under_a_number_that_comes_back_count_once() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("back");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let capture = capture_on(&bench.rx, &path)
        .with(["--ring-size", "128K"])
        .ready();
    // As long as it is stopped, its ring stays full.
    capture.signal(Signal::SIGSTOP);
    until("the capture to be stopped", LIMIT, || {
        (process::state(capture.pid()) == 'T').then_some(())
    });
    let sent = PacketSocket::open(&bench.tx).send(&frame, 0..1000, 0);
    capture.signal(Signal::SIGCONT);
    until("the ring in the file", LIMIT, || {
        (files::length(&path) >= 96 * 1024).then_some(())
    });

    // New namespaces give numbers in turn from 2 on.
    let first = bench.rx.index;
    let elsewhere = without_number("away", first);
    let away = move_to(&bench, &bench.rx, &elsewhere);
    assert_ne!(away.index, first);
    // A frame makes the capture find the new number.
    assert_eq!(PacketSocket::open(&bench.tx).send(&frame, 1000..1001, 0), 1);
    let wanted = frame.bytes(1000);
    until("the frame in the file", LIMIT, || {
        let file = std::fs::read(&path).expect("read the file");
        let mut windows = file.windows(wanted.len());
        windows.any(|window| window == wanted).then_some(())
    });
    let back = move_to(&bench, &away, &without_number("back", away.index));
    assert_eq!(back.index, first, "it has its first number back");
    assert_eq!(PacketSocket::open(&bench.tx).send(&frame, 1001..1002, 0), 1);
    // Between one look at the counts and the next it looks at its interfaces.
    let past = |field: &str, least: f64| {
        let found = capture.wait_event_with("progress", |progress| {
            progress[field].as_f64().is_some_and(|it| it > least)
        });
        found["seconds"].as_f64().expect("a number")
    };
    let then = past("seen", (sent + 1) as f64);
    past("seconds", then);

    let finished = capture.stop();
    let summary = finished.success();
    assert!(
        summary.outcomes[Outcome::RingFull] > 0,
        "{:?}",
        summary.outcomes
    );
    assert_eq!(summary.seen, sent + 2);
}

#[test]
fn a_renamed_interface_goes_on() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("renamed");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).ready();
    // An interface that is up may be renamed since Linux 6.2; before, down first.
    bench.rx.set(&["down"]);
    bench.rx.set(&["name", "other0"]);
    let renamed = Port::find(&bench.rx.netns, "other0");
    renamed.set(&["up"]);
    renamed.wait_up();
    bench.tx.wait_up();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let finished = capture.stop();
    assert_eq!(finished.success().written, 100);
    assert_eq!(
        Recording::read(&path).interfaces[0].name,
        "rx0",
        "as it was called at the start"
    );
    assert_eq!(renamed.xdp_program(), None);
}
