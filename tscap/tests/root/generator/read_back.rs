//! `tscap gen --read`: what came through of what was sent.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use tscap_streams::{DelayBasis, Sent, StreamId, StreamReport, StreamSummary, read};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_on, generate_on};
use tscap_testkit::command::tscap_path;
use tscap_testkit::files;
use tscap_testkit::root::alone;

/// Why these tests run alone.
const MEASURES: &str = "measures times";

const FRAMES: u64 = 3_000;
const FLOWS: u64 = 3;

/// 3,000 frames of 3 flows, 10,000 a second.
fn send(bench: &Bench) {
    let sent = generate_on(&bench.tx)
        .with(["--rate", "10k", "-c", "3000", "--flows", "3"])
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
}

/// Captures all of them.
fn capture_streams(bench: &Bench, path: &Path, arguments: &[&str]) {
    let capture = capture_on(&bench.rx, path).with(arguments).ready();
    send(bench);
    capture.stop().success();
}

fn report(path: &Path) -> StreamReport {
    let mut tscap = Command::new(tscap_path());
    let tscap = tscap.args(["gen", "--json", "--read"]).arg(path).output();
    let output = tscap.expect("start tscap");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    serde_json::from_slice(&output.stdout).expect("a report")
}

fn streams(report: &StreamReport) -> &[StreamSummary] {
    let [interface] = &report.interfaces[..] else {
        panic!("one interface: {report:?}");
    };
    let counts = interface.counts;
    assert_eq!(counts.frames, counts.streams + counts.others);
    assert_eq!(counts.streams, counts.checksum_right);
    assert_eq!(interface.streams.len() as u64, FLOWS);
    &interface.streams
}

#[test]
fn every_frame_of_every_flow_comes_back() {
    let Some(_lock) = alone(MEASURES) else {
        return;
    };
    let bench = Bench::new("read-back");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    capture_streams(&bench, &path, &[]);
    let report = report(&path);
    for stream in streams(&report) {
        let loss = &stream.loss;
        assert_eq!((loss.distinct, loss.lost), (FRAMES / FLOWS, 0));
        assert_eq!((loss.duplicates, stream.reordering.reordered), (0, 0));
        let path = stream.delay.path_ns.as_ref().expect("the file has a clock");
        // One host: the frame comes after it was sent, and within the second.
        assert!(path.min > 0 && path.max < 1_000_000_000, "{path:?}");
        assert_eq!(stream.delay.intervals.stamp_pairs, FRAMES / FLOWS - 1);
    }
    let DelayBasis::Clocks { host_bound_ns, .. } = report.interfaces[0].delay_basis else {
        panic!("{report:?}");
    };
    assert!((1..10_000).contains(&host_bound_ns), "{host_bound_ns}");
}

#[test]
fn what_was_sent_is_received_or_lost() {
    let Some(_lock) = alone(MEASURES) else {
        return;
    };
    let bench = Bench::new("read-loss");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["-c", "1000"]).ready();
    send(&bench);
    capture.wait().success();
    let run = streams(&report(&path))[0].id.run;
    let id = |flow| StreamId {
        run,
        flow: flow as u16,
    };
    let sent: Sent = (0..FLOWS).map(|flow| (id(flow), FRAMES / FLOWS)).collect();
    let report = read(&mut File::open(&path).unwrap(), &sent).unwrap();
    let mut received = 0;
    for stream in streams(&report) {
        let loss = &stream.loss;
        assert_eq!(loss.lost, FRAMES / FLOWS - loss.distinct);
        assert!(loss.lost > 0, "{loss:?}");
        received += loss.received;
    }
    assert_eq!(received + report.interfaces[0].counts.others, 1_000);
}

#[test]
fn raw_tsc_stamps_give_both_intervals() {
    let Some(_lock) = alone(MEASURES) else {
        return;
    };
    let bench = Bench::new("read-tsc");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    capture_streams(&bench, &path, &["--clock", "tsc", "--keep-raw"]);
    for stream in streams(&report(&path)) {
        let intervals = stream.delay.intervals;
        let pairs = (intervals.tsc_pairs, intervals.stamp_pairs);
        assert_eq!(pairs, (FRAMES / FLOWS - 1, 0));
        let error = stream.delay.interval_error_ns.as_ref().unwrap();
        assert!(error.p50.unwrap() < 50_000, "{error:?}");
        // The generator's event has not made the capture's pause.
        let path = stream.delay.path_ns.as_ref().expect("the file has a clock");
        assert!(path.min > 0, "{path:?}");
    }
}
