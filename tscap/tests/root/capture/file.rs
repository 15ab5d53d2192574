//! What stands in the file besides the packets.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::in_process::capture_with;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::{Recording, Statistics};
use tscap_testkit::root::{root, root_with};
use tscap_testkit::wait;

const PEERS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

fn now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    u64::try_from(now.as_nanos()).expect("before 2554")
}

#[test]
fn headers_and_last_statistics_say_what_was_captured() {
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("file");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);

    let before = now();
    let capture = capture_on(&bench.rx, &path).ready();
    let ready = now();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let sent = now();
    let finished = capture.stop();
    let after = now();
    let summary = finished.success();
    let recording = Recording::read(&path);

    let [hardware, os, application] = &recording.section;
    assert!(hardware.is_some() && os.as_ref().is_some_and(|os| os.contains("Linux")));
    assert!(
        application
            .as_ref()
            .is_some_and(|name| name.contains("tscap")),
        "{application:?}"
    );
    let interface = &recording.interfaces[0];
    assert_eq!(interface.name, "rx0");
    assert_eq!(interface.mac.as_deref(), Some(&bench.rx.mac[..]));
    assert_eq!(interface.snaplen, 65_428);
    assert!(interface.nanoseconds, "if_tsresol is 9");
    assert!(interface.os.as_ref().is_some_and(|os| os.contains("Linux")));
    assert_eq!(interface.custom["hooks"]["in"], "native XDP");
    assert_eq!(interface.custom["stamp"]["source"], "ktime");
    assert_eq!(interface.custom["stamp"]["path"], "bpf_ktime_get_ns");
    assert!(
        interface.custom["offloads"].is_object(),
        "{}",
        interface.custom
    );

    // Stamps, start and end in the same unit as the host's clock.
    let slack = summary.clock.host_bound_ns;
    for packet in &recording.packets {
        assert!(
            (ready - slack..=sent + slack).contains(&packet.nanos),
            "{}",
            packet.nanos
        );
    }
    let last = recording.last_statistics(0);
    let (start, end) = (last.start.expect("a start"), last.end.expect("an end"));
    assert!(
        before <= start && start <= ready + slack,
        "{before} {start} {ready}"
    );
    assert!(
        sent - slack <= end && end <= after + slack,
        "{sent} {end} {after}"
    );
    assert!(
        (end..=after + slack).contains(&last.nanos),
        "{end} {} {after}",
        last.nanos
    );
    let seconds = (end - start) as f64 / 1e9;
    assert!(
        (seconds - summary.seconds).abs() < 0.5,
        "{seconds} {}",
        summary.seconds
    );

    // The accounting, the same as in the summary.
    assert_eq!(last.after, 100, "after the last packet");
    assert_eq!(
        (last.received, last.os_drop, last.delivered),
        (Some(100), Some(0), Some(100))
    );
    assert_eq!(last.if_drop, summary.interfaces[0].ifdrop);
    let totals = &last.custom["totals"];
    assert_eq!(
        (totals["seen"].as_u64(), totals["written"].as_u64()),
        (Some(100), Some(100))
    );
    let outcomes = serde_json::to_value(summary.outcomes).expect("JSON");
    assert_eq!(
        (summary.outcomes.total(), &totals["outcomes"]),
        (0, &outcomes)
    );
    let clock = &last.custom["clock"];
    assert_eq!(
        clock["host_bound_ns"].as_u64(),
        Some(summary.clock.host_bound_ns)
    );
    assert_eq!(clock["utc_bound_ns"].as_u64(), summary.clock.utc_bound_ns);
    assert!(
        clock["segments"]
            .as_array()
            .is_some_and(|segments| segments.len() == 1),
        "{clock}"
    );

    peers::agree_on(&path, 100);
    let text = peers::capinfos(&path);
    for part in ["rx0", "nanoseconds", "Number of stat entries = "] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_tai_source_is_named_and_gives_the_same_time() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("tai");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path)
        .with(["--clock", "tai"])
        .ready();
    let before = now();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let after = now();
    let finished = capture.stop();
    let clock = &finished.success().clock;
    assert_eq!(
        (clock.source.as_str(), clock.path.as_str()),
        ("tai", "bpf_ktime_get_tai_ns")
    );
    let recording = Recording::read(&path);
    assert_eq!(recording.interfaces[0].custom["stamp"]["source"], "tai");
    let slack = clock.host_bound_ns;
    for packet in &recording.packets {
        assert!(
            (before - slack..=after + slack).contains(&packet.nanos),
            "{}",
            packet.nanos
        );
    }
}

#[test]
fn statistics_come_as_often_as_asked_for() {
    const PERIOD: Duration = Duration::from_secs(2);
    let Some(_lock) = root_with(&PEERS) else {
        return;
    };
    let bench = Bench::new("isb");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let socket = PacketSocket::open(&bench.tx);
    let of_ten = |it: &&Statistics| (it.after, it.received) == (10, Some(10));

    capture_with(
        |capture| capture.statistics_every = PERIOD,
        &bench.rx,
        &path,
        &["-c", "15"],
        || {
            socket.send(&frame, 0..10, 0);
            wait::until("statistics of ten frames", LIMIT, || {
                let statistics = Recording::read_torn(&path).0.statistics;
                statistics.iter().find(of_ten).map(|_| ())
            });
            socket.send(&frame, 10..15, 0);
        },
    );

    let recording = Recording::read(&path);
    let [all @ .., last] = &recording.statistics[..] else {
        panic!("no statistics");
    };
    assert_eq!(
        (last.after, last.received, last.delivered),
        (15, Some(15), Some(15))
    );
    let start = last.start.expect("a start");
    let mut before = start;
    for block in all {
        let apart = block.nanos - before;
        // A loaded machine takes its time.
        let period = PERIOD.as_nanos() as u64;
        assert!(
            (period..period + 1_000_000_000).contains(&apart),
            "{apart} ns"
        );
        assert_eq!(block.start, Some(start));
        assert!(block.custom.get("totals").is_none());
        before = block.nanos;
    }
    let of_ten = all.iter().find(of_ten).expect("they were there");
    // The clock has been looked at all the time, about once a second.
    let seconds = (of_ten.nanos - start) as usize / 1_000_000_000;
    let samples = of_ten.custom["clock"]["samples"].as_array();
    let samples = samples.expect("samples").len();
    assert!(
        samples + 2 > seconds && samples <= 2 * seconds,
        "{samples} samples in {seconds} s"
    );
    peers::agree_on(&path, 15);
}

#[test]
fn an_older_file_of_the_same_name_is_replaced() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("replace");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    std::fs::write(&path, vec![0x55; 100_000]).expect("an older file");
    capture_on(&bench.rx, &path).ready().stop().success();
    assert_eq!(Recording::read(&path).interfaces.len(), 1);
    assert!(files::length(&path) < 100_000);
}
