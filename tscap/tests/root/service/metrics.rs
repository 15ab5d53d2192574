//! `--metrics-file`: Prometheus's text format, and counts that are those of the summary.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tscap_capture::Summary;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_both};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::root::root;
use tscap_testkit::wait;

type Labels = BTreeMap<String, String>;

/// What a page says: the samples of each metric.
struct Page(BTreeMap<String, Vec<(Labels, f64)>>);

impl Page {
    /// Panics unless the file is in the text format, version 0.0.4, as Prometheus takes it:
    /// each metric once, its HELP and TYPE before its samples, no labels twice.
    #[track_caller]
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a metrics file");
        let mut page = BTreeMap::<String, Vec<_>>::new();
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(help) = lines.next() {
            let words = help.strip_prefix("# HELP ").expect("a HELP line");
            let (name, meaning) = words.split_once(' ').expect("a meaning");
            assert!(meaning.ends_with(".\n"), "{help:?}");
            let kind = lines.next().expect("a TYPE line");
            let is_counter = name.ends_with("_total");
            let expected = if is_counter { "counter" } else { "gauge" };
            assert_eq!(kind, format!("# TYPE {name} {expected}\n"));
            let samples = page.entry(name.into()).or_default();
            assert!(samples.is_empty(), "{name} comes twice");
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let rest = line.strip_prefix(name).expect("a sample of this metric");
                let (labels, rest) = labels(rest.strip_prefix('{').expect("labels"));
                let value = rest.strip_prefix(' ').and_then(|it| it.strip_suffix('\n'));
                let value: f64 = value.expect("a value").parse().expect("a number");
                let is_new = samples.iter().all(|(others, _)| *others != labels);
                assert!(is_new, "twice: {line}");
                samples.push((labels, value));
            }
        }
        Self(page)
    }

    /// The one sample of a metric.
    #[track_caller]
    fn value(&self, name: &str) -> f64 {
        match self.0.get(name).map(Vec::as_slice) {
            Some([(_, value)]) => *value,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// The sum over those samples that have each of `labels`.
    #[track_caller]
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |of: &Labels| labels.iter().all(|(name, value)| of[*name] == *value);
        let meant = self.0[name].iter().filter(|(of, _)| has(of));
        let values: Vec<_> = meant.map(|(_, value)| *value).collect();
        assert!(!values.is_empty(), "no {name} with {labels:?}");
        values.into_iter().sum()
    }

    /// Panics unless each count is that of the summary.
    #[track_caller]
    fn is_of(&self, summary: &Summary) {
        let frames = |labels: &[(&str, &str)]| self.sum("tscap_frames_total", labels);
        assert_eq!(frames(&[]), summary.seen as f64);
        for direction in &summary.directions {
            let labels = [("direction", direction.direction.as_str())];
            let seen = self.sum("tscap_seen_frames_total", &labels);
            assert_eq!(seen, direction.totals.seen as f64);
            assert_eq!(seen, frames(&labels), "each frame has one outcome");
        }
        for interface in &summary.interfaces {
            for of in &interface.directions {
                let count = |outcome| {
                    frames(&[
                        ("interface", &interface.name),
                        ("direction", &of.direction),
                        ("outcome", outcome),
                    ])
                };
                assert_eq!(count("written"), of.totals.written as f64);
                for (outcome, number) in of.totals.outcomes.entries() {
                    assert_eq!(count(outcome.name), number as f64, "{}", outcome.name);
                }
            }
        }
        let bytes = self.value("tscap_written_bytes_total");
        assert_eq!(bytes, summary.bytes_written as f64);
        let bound = self.value("tscap_host_clock_bound_seconds");
        assert_eq!((bound * 1e9).round() as u64, summary.clock.host_bound_ns);
        let utc = self.0.get("tscap_utc_bound_seconds");
        assert_eq!(utc.is_some(), summary.clock.synchronised);
    }
}

/// Labels up to the closing brace, and what follows it.
#[track_caller]
fn labels(mut text: &str) -> (Labels, &str) {
    let mut labels = Labels::new();
    loop {
        let (name, rest) = text.split_once("=\"").expect("a label");
        assert!(
            name.chars().all(|it| it.is_ascii_lowercase() || it == '_'),
            "{name}"
        );
        let (mut value, mut characters) = (String::new(), rest.chars());
        loop {
            match characters.next().expect("a closing quote") {
                '"' => break,
                '\\' => value.push(match characters.next() {
                    Some('n') => '\n',
                    Some(other @ ('\\' | '"')) => other,
                    other => panic!("not an escape: {other:?}"),
                }),
                other => value.push(other),
            }
        }
        assert_eq!(labels.insert(name.into(), value), None, "{name} twice");
        match characters.next() {
            Some(',') => text = characters.as_str(),
            Some('}') => return (labels, characters.as_str()),
            other => panic!("{other:?} behind a label"),
        }
    }
}

#[test]
fn counts_are_those_of_the_summary() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("prom");
    // A name that a kernel takes, and that needs each escape there is in a name.
    let odd = r#"q"\x"#;
    let add = ["link", "add", odd, "type", "veth", "peer", "name", "peer0"];
    bench.rx.netns.ip(&add);
    let odd = Port::find(&bench.rx.netns, odd);
    let peer = Port::find(&bench.rx.netns, "peer0");
    for port in [&odd, &peer] {
        port.set(&["up"]);
    }
    for port in [&odd, &peer] {
        port.wait_up();
    }
    let folder = files::folder();
    let path = folder.path().join("tscap-test.prom");
    let metrics = path.to_str().expect("UTF-8");
    let capture = capture_both(&bench.rx.netns)
        .on(&bench.rx)
        .on(&odd)
        .to(&folder.path().join("out.pcapng"))
        .with(["--metrics-file", metrics, "less 100"])
        .ready();
    let short = Frame::new(&bench.tx, &bench.rx, 60);
    let long = Frame::new(&bench.tx, &bench.rx, 600);
    let received = PacketSocket::open(&bench.tx);
    received.send(&short, 0..40, 0);
    received.send(&long, 0..15, 0);
    let sent = PacketSocket::open(&odd);
    sent.send(&Frame::new(&odd, &peer, 60), 0..7, 0);
    wait::until("a page with frames", LIMIT, || {
        let page = path.exists().then(|| Page::read(&path))?;
        assert_eq!(page.value("tscap_up"), 1.0);
        let seen = page.sum("tscap_seen_frames_total", &[]);
        let frames = page.sum("tscap_frames_total", &[]);
        assert!(frames <= seen, "{frames} of {seen} frames");
        (frames >= 62.0).then_some(())
    });
    let summary = capture.stop().success();
    assert!(summary.written >= 47 && summary.outcomes.total() >= 15);
    let page = Page::read(&path);
    page.is_of(&summary);
    assert_eq!(page.value("tscap_up"), 0.0);
    assert_eq!(page.value("tscap_metrics_write_failures_total"), 0.0);
    assert!(page.value("tscap_ring_fill_max_bytes") > 0.0);
    let size = page.value("tscap_ring_size_bytes");
    let share = page.value("tscap_ring_fill_max_ratio");
    assert_eq!(share * size, page.value("tscap_ring_fill_max_bytes"));
    let started = page.value("tscap_start_time_seconds");
    assert!(started > 1.7e9 && page.value("tscap_last_write_timestamp_seconds") > started);
    for samples in page.0.values() {
        assert!(
            samples
                .iter()
                .all(|(labels, _)| labels["capture"] == "tscap-test")
        );
    }
    let hooks = &page.0["tscap_interface_info"];
    assert_eq!(hooks.len(), 4, "two interfaces, two directions: {hooks:?}");
    assert_eq!(files::mode(&path) & 0o777, 0o644);
    let left = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 2, "the capture and its metrics");
}

/// An interface that came up again under its name is one with the one before it.
#[test]
fn a_name_is_one_interface() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("prom-again");
    let folder = files::folder();
    let path = folder.path().join("again.prom");
    let capture = capture_both(&bench.rx.netns)
        .with(["-i", "again*"])
        .to(&folder.path().join("out.pcapng"))
        .with(["--metrics-file", path.to_str().expect("UTF-8")])
        .ready();
    for frames in [3, 5] {
        let add = [
            "link", "add", "again0", "type", "veth", "peer", "name", "other0",
        ];
        bench.rx.netns.ip(&add);
        let again = Port::find(&bench.rx.netns, "again0");
        let other = Port::find(&bench.rx.netns, "other0");
        other.set(&["up"]);
        again.set(&["up"]);
        capture.wait_event_with("joined", |it| it["ifindex"] == again.index);
        again.wait_up();
        let socket = PacketSocket::open(&other);
        socket.send(&Frame::new(&other, &again, 60), 0..frames, 0);
        bench.rx.netns.ip(&["link", "delete", "again0"]);
        capture.wait_event_with("left", |it| it["ifindex"] == again.index);
    }
    let summary = capture.stop().success();
    assert_eq!(summary.interfaces.len(), 2);
    let page = Page::read(&path);
    let seen = page.sum("tscap_frames_total", &[("interface", "again0")]);
    assert_eq!(seen, summary.seen as f64);
    assert!(seen >= 8.0, "{seen}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_once_and_ends_nothing() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("prom-fails");
    let folder = files::folder();
    let path = folder.path().join("none").join("out.prom");
    let capture = capture_both(&bench.rx.netns)
        .on(&bench.rx)
        .to(&folder.path().join("out.pcapng"))
        .with(["--metrics-file", path.to_str().expect("UTF-8")])
        .ready();
    // It is told by the page after the one that failed, or at the end.
    let finished = capture.stop();
    finished.success();
    let reported = finished.stderr.matches("cannot write the metrics to ");
    assert_eq!(reported.count(), 1, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("No such file"),
        "{}",
        finished.stderr
    );
    let warnings = finished.events("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

/// What is not used is not kept.
#[test]
fn a_capture_that_does_not_begin_leaves_what_was_there() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("prom-refused");
    let folder = files::folder();
    let path = folder.path().join("out.prom");
    fs::write(&path, "of the capture before\n").expect("a file");
    let refused = capture_both(&Arc::clone(&bench.rx.netns))
        .with(["-i", "nosuch0"])
        .to(&folder.path().join("out.pcapng"))
        .with(["--metrics-file", path.to_str().expect("UTF-8")])
        .run();
    refused.failure(1, &["nosuch0"]);
    let text = fs::read_to_string(&path).expect("a file");
    assert_eq!(text, "of the capture before\n");
}
