//! A program that asks a server: no round trip, nor the server's part of it, is longer than the
//! program waited.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use tscap_delay::schema::{How, Match};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{delay, echo};
use tscap_testkit::root::alone;

use super::{MEASURES, WINDOW, end, first, is_within};

const FRAMES: u64 = 2_000;

/// Asks and waits for the answer, again and again; how long each took, ns, ascending.
fn ask(bench: &Bench, port: u16) -> Vec<i64> {
    bench.tx.netns.enter(|| {
        let socket = UdpSocket::bind("10.9.0.1:5000").expect("bind");
        let limit = Some(Duration::from_secs(10));
        socket.set_read_timeout(limit).expect("a limit");
        let mut took = Vec::new();
        for number in 0..FRAMES {
            let request = number.to_be_bytes();
            let start = Instant::now();
            socket.send_to(&request, ("10.9.0.2", port)).expect("send");
            let mut reply = [0; 16];
            let length = socket.recv(&mut reply).expect("a reply");
            took.push(i64::try_from(start.elapsed().as_nanos()).expect("short"));
            assert_eq!(reply[..length], request);
        }
        took.sort_unstable();
        took
    })
}

#[test]
fn a_client_waits_no_less_than_was_measured() {
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("delay-asked");
    bench.acquaint();
    let server = echo(&bench.rx.netns).with(["--port", "4000"]).ready();
    let side =
        |netns, option: &str, port: &str| delay(netns).with([option, port]).with(WINDOW).ready();
    let inside = side(&bench.rx.netns, "--reflect", "rx0");
    let outside = side(&bench.tx.netns, "--rtt", "tx0");
    let waited = ask(&bench, 4000);
    let (outside, inside) = (end(outside), end(inside));
    let server = server.stop().end.expect("a summary");
    assert_eq!(
        (&server["received"], &server["sent"]),
        (&FRAMES.into(), &FRAMES.into())
    );
    for (measurement, how) in [(&inside, How::Reflect), (&outside, How::Rtt)] {
        assert_eq!(measurement.method.how, how);
        assert_eq!(measurement.method.matched_by, Match::Reply);
        let (exit, delays) = first(measurement);
        assert_eq!(exit.account.matched, FRAMES, "{how:?}: {:?}", exit.account);
        // The asking program's own clock.
        is_within(delays, &waited, 1_000);
    }
}
