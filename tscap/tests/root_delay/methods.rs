//! The other methods: a server from both of its sides, mirrors and their correction; and what
//! goes on beside.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use tscap::measuring::delay::schema::{How, Match};
use tscap_testkit::bench::Bench;
use tscap_testkit::between::Between;
use tscap_testkit::capture::{delay, echo};
use tscap_testkit::files;
use tscap_testkit::root::{alone, alone_with};

use super::{MEASURES, PROGRAMS, WINDOW, end, first, is_within, measure, send};

const FRAMES: u64 = 2_000;
const PACE: [&str; 2] = ["--rate", "5k"];

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

/// What the server takes is a part of what its client waits for.
#[test]
fn a_server_is_measured_from_both_of_its_sides() {
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("delay-echo");
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
    let median = |measurement| first(measurement).1.summary.p50.expect("enough");
    let (inside, outside) = (median(&inside), median(&outside));
    assert!(inside < outside, "{inside} of {outside} ns");
}

/// A third pair in the device's namespace.
fn cable(between: &Between) {
    let pair = ["link", "add", "m0", "type", "veth", "peer", "name", "m1"];
    between.device().ip(&pair);
    for end in ["m0", "m1"] {
        between.device().ip(&["link", "set", end, "up"]);
    }
}

#[test]
fn both_ends_are_mirrored_to_one_port_and_corrected() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::bridge("delay-mirror");
    cable(&between);
    let mirror = ["--mirror", "m0:m1", "--match", "gen"];
    let (measurement, ()) = measure(&between, &mirror, || send(&between, &PACE, FRAMES));
    assert_eq!(measurement.method.how, How::Mirror);
    let (exit, delays) = first(&measurement);
    let of = exit.account;
    assert_eq!((of.matched, of.entered, of.left), (FRAMES, FRAMES, FRAMES));

    let folder = files::folder();
    let saved = folder.path().join("cable.json");
    let json = serde_json::to_string(&measurement).expect("JSON");
    std::fs::write(&saved, json).expect("write");
    let correction = saved.to_str().expect("a path");
    let options = ["--match", "gen", "--correction", correction];
    let (corrected, ()) = measure(&between, &options, || send(&between, &PACE, FRAMES));
    let taken_off = corrected.method.correction.expect("a correction");
    assert_eq!(taken_off.file, correction);
    assert!((taken_off.mean_ns - delays.summary.mean).abs() < 1e-6);
}

#[test]
fn load_and_traffic_beside_say_what_they_did() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-loaded");
    cable(&between);
    let options = ["--load", "paper:0", "--parallel", "5Mbit:m0"];
    let (measurement, ()) = measure(&between, &options, || send(&between, &PACE, FRAMES));
    assert_eq!(first(&measurement).0.account.matched, FRAMES);
    let method = &measurement.method;
    let load = method.load.as_deref().expect("a load");
    assert!(load.starts_with("paper on CPU 0 ("), "{load}");
    let parallel = method.parallel.as_deref().expect("traffic");
    assert!(
        parallel.starts_with("5 Mbit/s of 192-byte frames on m0 ("),
        "{parallel}"
    );
    assert!(!parallel.contains("(0 frames"), "{parallel}");
}
