//! `tscap stamp`: what sockets of others get as receive times, and what they do not. Needs
//! root.

mod beside;
mod documents;
mod forwarded;
mod refused;
mod send_times;
mod times;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, stamp};
use tscap_testkit::finished::Finished;
use tscap_testkit::stamped_udp::StampedUdp;

/// A pair with addresses, and sockets that are given receive times.
fn bed(tag: &str) -> (Bench, StampedUdp) {
    let bench = Bench::new(tag);
    bench.acquaint();
    let udp = StampedUdp::new(&bench.tx.netns, &bench.rx.netns, "10.9.0.2");
    (bench, udp)
}

/// `tscap stamp` where the datagrams are received, ready.
fn stamping(bench: &Bench, options: &[&str]) -> Capture {
    let plan = stamp(&bench.rx.netns).on(&bench.rx).with(options);
    let running = plan.start();
    running.wait_event("ready");
    running
}

/// The summary of one that ended in order; its account is checked once more.
#[track_caller]
fn summary(finished: &Finished) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let said = finished.end.clone().expect("a summary");
    let sum = |names: &[&str]| names.iter().map(|name| count(&said, name)).sum::<u64>();
    let at_xdp = sum(&["marked", "tcp", "no_stamp", "no_room"]);
    assert_eq!(count(&said, "received"), at_xdp, "{said}");
    let kept = sum(&[
        "unasked",
        "paced",
        "unmarked",
        "stale",
        "overtaken",
        "apart",
    ]);
    assert_eq!(
        count(&said, "seen"),
        count(&said, "stamped") + kept,
        "{said}"
    );
    assert_eq!(said["adds_up"], true, "{said}");
    said
}

#[track_caller]
fn count(said: &Value, name: &str) -> u64 {
    let number = said[name].as_u64();
    number.unwrap_or_else(|| panic!("no {name}: {said}"))
}
