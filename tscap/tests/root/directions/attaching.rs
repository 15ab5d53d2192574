//! Frames of a steady stream while captures are attached and detached. A capture at tcx,
//! which leaves the driver alone, counts those that come through.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_both, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::root::alone;
use tscap_testkit::wait::until;

/// From one frame to the next.
const PERIOD: Duration = Duration::from_micros(50);
/// Captures that are attached and detached one after the other.
const CAPTURES: usize = 10;
/// Frames have come through when none does for so long.
const QUIET: Duration = Duration::from_millis(50);

fn received(port: &Port) -> u64 {
    let stats = &port.show()["stats64"]["rx"]["packets"];
    stats.as_u64().expect("a count")
}

/// Sends through the network stack until told to end; returns how many frames.
fn stream(bench: &Bench, is_over: &AtomicBool) -> u64 {
    let socket = PacketSocket::open(&bench.tx);
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let (mut sent, mut due) = (0, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        socket.send_once(&frame.bytes(sent)).expect("send");
        sent += 1;
        due += PERIOD;
    }
    sent
}

/// Frames lost while captures with these arguments come and go on `port`.
fn lost(bench: &Bench, port: &Port, hook: &str, arguments: &[&str]) -> u64 {
    let folder = files::folder();
    let path = |name| folder.path().join(name);
    let through = capture_on(&bench.rx, &path("through")).with(["--hook", "tcx"]);
    let through = through.ready();
    let is_over = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let stream = scope.spawn(|| stream(bench, &is_over));
        for _ in 0..CAPTURES {
            let capture = capture_both(&port.netns).on(port).to(&path("out"));
            let summary = capture.with(arguments).ready().stop().success();
            let at = summary.interfaces[0].directions[0].hook.as_deref();
            assert_eq!(at, Some(hook));
            assert!(summary.written > 0, "the stream passes {hook}");
        }
        is_over.store(true, Ordering::Relaxed);
        stream.join().expect("the stream")
    });
    until("all frames", Duration::from_secs(10), || {
        let before = received(&bench.rx);
        thread::sleep(QUIET);
        (received(&bench.rx) == before).then_some(())
    });
    let arrived = through.stop().success().written;
    let lost = sent.checked_sub(arrived).expect("no other frames");
    eprintln!("{hook}: {lost} of {sent} lost in {CAPTURES} captures");
    lost
}

/// What is lost at the other hooks is no more than what may wait in veth's queue (256
/// frames, `VETH_RING_SIZE`) each time that a capture is detached.
#[test]
fn tcx_loses_no_frame_of_others() {
    let Some(_lock) = alone("others would take the CPU from the stream") else {
        return;
    };
    let bench = Bench::new("dir-attaching");
    let tcx = ["--hook", "tcx"];
    let received = [&tcx[..], &["-Q", "in"]].concat();
    assert_eq!(lost(&bench, &bench.rx, "tcx ingress", &received), 0);
    let sent = [&tcx[..], &["-Q", "out"]].concat();
    assert_eq!(lost(&bench, &bench.tx, "tcx egress", &sent), 0);
    for (choice, hook) in [("generic", "generic XDP"), ("xdp", "native XDP")] {
        let arguments = ["-Q", "in", "--hook", choice];
        let lost = lost(&bench, &bench.rx, hook, &arguments);
        assert!(lost <= 256 * CAPTURES as u64, "{hook}: {lost}");
    }
}
