//! `tscap qos --flow gen FILE`: what came through of what was sent.

use std::path::Path;
use std::process::Command;

use tscap_flows::schema::{FlowReport, Quality};
use tscap_report::saved;
use tscap_streams::DelayBasis;
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

fn report(path: &Path) -> Quality {
    let mut tscap = Command::new(tscap_path());
    let tscap = tscap
        .args(["qos", "--json", "--flow", "gen", "-r"])
        .arg(path)
        .output();
    let output = tscap.expect("start tscap");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    saved::read(&text).expect("a report")
}

fn streams(report: &Quality) -> &[FlowReport] {
    let frames = report.places[0].streams.expect("streams");
    assert_eq!(frames.frames, frames.streams + frames.others);
    assert_eq!(frames.streams, frames.checksum_right);
    assert_eq!(frames.streams, report.account.in_flows);
    assert_eq!(report.flows.len() as u64, FLOWS);
    &report.flows
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
        let loss = stream.loss.expect("numbers");
        assert_eq!((loss.distinct, loss.lost), (FRAMES / FLOWS, 0));
        let reordered = stream.reordering.expect("numbers").reordered;
        assert_eq!((loss.duplicates, reordered), (0, 0));
        let delay = stream.delay.expect("the file has a clock");
        // One host: the frame comes after it was sent, and within the second.
        assert!(
            delay.min_ns > 0 && delay.max_ns < 1_000_000_000,
            "{delay:?}"
        );
        let ipdv = stream.ipdv.expect("neighbours");
        assert_eq!(ipdv.tai_pairs, FRAMES / FLOWS - 1);
    }
    let DelayBasis::Clocks { host_bound_ns, .. } = report.places[0].delays else {
        panic!("{report:?}");
    };
    assert!((1..10_000).contains(&host_bound_ns), "{host_bound_ns}");
}

/// A capture that ends before the frames do.
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
    let report = report(&path);
    let mut received = 0;
    for stream in streams(&report) {
        let loss = stream.loss.expect("numbers");
        let between = loss.last.zip(loss.first).expect("some came");
        assert_eq!(loss.lost + loss.distinct, between.0.abs_diff(between.1) + 1);
        assert!(loss.distinct < FRAMES / FLOWS, "{loss:?}");
        received += loss.received;
    }
    let others = report.places[0].streams.expect("streams").others;
    assert_eq!(received + others, 1_000);
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
    let report = report(&path);
    for stream in streams(&report) {
        let ipdv = stream.ipdv.expect("neighbours");
        let pairs = (ipdv.tsc_pairs, ipdv.tai_pairs);
        assert_eq!(pairs, (FRAMES / FLOWS - 1, 0));
        let error = stream.interval_error.expect("neighbours");
        assert!(error.p50_ns.unwrap() < 50_000, "{error:?}");
        // The generator's event has not made the capture's pause.
        let delay = stream.delay.expect("the file has a clock");
        assert!(delay.min_ns > 0, "{delay:?}");
    }
}
