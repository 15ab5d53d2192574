//! Send times in test packets of STAMP: each is read by a plain socket, behind the kernel's own
//! look at its checksum.

mod left_alone;
mod packets;
mod peer;
mod written;

use serde_json::Value;
use tscap_protocol::PORT;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, stamp};
use tscap_testkit::finished::Finished;

use self::packets::Family;
use super::count;

/// A pair with addresses of both families. Packets go from `rx0`, where tscap is, to `tx0`.
fn bed(tag: &str) -> Bench {
    let bench = Bench::new(tag);
    bench.acquaint();
    for (port, other, ours, theirs) in [
        (&bench.rx, &bench.tx, Family::V6.ours(), Family::V6.theirs()),
        (&bench.tx, &bench.rx, Family::V6.theirs(), Family::V6.ours()),
    ] {
        let path = format!("ipv6/conf/{}/disable_ipv6", port.name);
        port.netns.set(&path, "0");
        let address = format!("{ours}/64");
        let add = ["address", "add", &address, "dev", &port.name, "nodad"];
        port.netns.ip(&add);
        port.knows(&theirs.to_string(), other);
    }
    bench
}

/// `tscap stamp --send-times` at `rx0`, for the port of session-reflectors; ready.
fn sending(bench: &Bench) -> Capture {
    let ports = PORT.to_string();
    let plan = stamp(&bench.rx.netns).on(&bench.rx);
    let running = plan.with(["--clock", "ktime", "--send-times", &ports]);
    let running = running.start();
    let ready = running.wait_event("ready");
    assert_eq!(
        ready["send_time_ports"],
        serde_json::json!([PORT]),
        "{ready}"
    );
    running
}

/// What is said of send times in the end: `written`, and those of `outcomes`, exactly. Of other
/// packets there may be some.
#[track_caller]
fn outcomes(finished: &Finished, written: usize, outcomes: &[(&str, usize)]) -> Value {
    let all = super::summary(finished);
    let said = all["send_times"].clone();
    let mut others = 0;
    for name in [
        "forwarded",
        "fragment",
        "aggregate",
        "short",
        "authenticated",
        "no_stamp",
        "stale",
        "overtaken",
        "refused",
    ] {
        let expected = outcomes.iter().find(|it| it.0 == name);
        let expected = expected.map_or(0, |it| it.1 as u64);
        assert_eq!(count(&said, name), expected, "{name}: {said}");
        others += expected;
    }
    assert_eq!(count(&said, "written"), written as u64, "{said}");
    let all = written as u64 + others + count(&said, "other");
    assert_eq!(count(&said, "seen"), all, "{said}");
    said
}
