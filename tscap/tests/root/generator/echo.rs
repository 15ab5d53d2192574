//! `tscap gen --echo`: what comes goes back to its sender unchanged.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use tscap_common::stream::{LENGTH, StreamHeader};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_on, echo, generate_on};
use tscap_testkit::files;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;

/// The responder's socket has room for all of them, also where it has to wait for a CPU.
const PACKETS: u64 = 1_000;
/// Of a frame, bytes.
const SIZE: usize = 192;
/// Behind Ethernet, IPv4 and UDP.
const PAYLOAD_AT: usize = 42;

/// Two namespaces that know each other's addresses, so that no ARP comes between.
fn acquainted(tag: &str) -> Bench {
    let bench = Bench::new(tag);
    bench.acquaint();
    bench
}

/// Sends to the other end, where port `port` answers or not.
fn send(bench: &Bench, port: &str) {
    let to = bench.rx.mac_text();
    let addresses = ["--src", "10.9.0.1", "--dst", "10.9.0.2", "--dst-mac", &to];
    let sent = generate_on(&bench.tx)
        .with(["--sender", "packet", "--rate", "10k", "--size", "192"])
        .with(["-c", &PACKETS.to_string(), "--dst-port", port])
        .with(addresses)
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(sent.end.expect("a summary")["sent"], PACKETS);
}

#[track_caller]
fn counts(echo: Capture, stopped_by: &str) -> serde_json::Value {
    let finished = echo.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let end = finished.end.expect("a summary");
    assert_eq!(end["stopped_by"], stopped_by, "{end}");
    let sum = end["sent"].as_u64().unwrap() + end["unsent"].as_u64().unwrap();
    assert_eq!(end["received"], sum, "{end}");
    end
}

#[test]
fn every_packet_comes_back_unchanged() {
    let Some(_lock) = root() else { return };
    let bench = acquainted("echo");
    let folder = files::folder();
    let path = folder.path().join("replies.pcapng");
    let all = PACKETS.to_string();
    let replies = ["-c", &all, "udp", "src", "port", "9"];
    let capture = capture_on(&bench.tx, &path).with(replies).ready();
    let echo = echo(&bench.rx.netns).with(["-c", &all]).ready();
    send(&bench, "9");
    let end = counts(echo, "done");
    assert_eq!((&end["sent"], &end["unsent"]), (&PACKETS.into(), &0.into()));
    assert_eq!((&end["failed"], &end["overflowed"]), (&0.into(), &0.into()));
    capture.wait().success();
    let mut numbers = BTreeSet::new();
    for packet in &Recording::read(&path).packets {
        assert_eq!(packet.data.len(), SIZE);
        let payload = &packet.data[PAYLOAD_AT..];
        let header = StreamHeader::of(payload).expect("a header of gen's");
        numbers.insert(header.seq);
        // What gen puts behind its header.
        assert!(payload[LENGTH..].iter().all(|byte| *byte == 0));
    }
    let all = 0..u32::try_from(PACKETS).expect("few");
    assert!(numbers.into_iter().eq(all), "each packet once");
}

/// Without a route back the sending fails.
#[test]
fn what_can_not_be_sent_back_is_counted() {
    let Some(_lock) = root() else { return };
    let bench = acquainted("echo-unsent");
    let all = PACKETS.to_string();
    let echo = echo(&bench.rx.netns)
        .with(["-c", &all, "--port", "4000", "--cpu", "0"])
        .ready();
    bench
        .rx
        .netns
        .ip(&["route", "add", "prohibit", "10.9.0.1/32"]);
    // Otherwise the kernel drops what it could not answer.
    for interface in ["all", "rx0"] {
        let path = format!("ipv4/conf/{interface}/rp_filter");
        bench.rx.netns.set(&path, "0");
    }
    send(&bench, "4000");
    let end = counts(echo, "done");
    assert_eq!((&end["sent"], &end["unsent"]), (&0.into(), &PACKETS.into()));
}

#[test]
fn it_ends_by_a_signal_and_by_time() {
    let Some(_lock) = root() else { return };
    let bench = acquainted("echo-end");
    let running = echo(&bench.rx.netns).ready();
    running.wait_event("progress");
    running.signal(Signal::SIGINT);
    let end = counts(running, "signal");
    assert_eq!(end["received"], 0);
    let running = echo(&bench.rx.netns).with(["--duration", "0.1"]).start();
    counts(running, "done");
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let Some(_lock) = root() else { return };
    let bench = acquainted("echo-taken");
    let _first = echo(&bench.rx.netns).with(["--port", "4000"]).ready();
    let second = echo(&bench.rx.netns).with(["--port", "4000"]).run();
    let parts = ["cannot answer on UDP 0.0.0.0:4000", "in use", "--port"];
    second.failure(1, &parts);
}
