//! `tscap qos` between namespaces: what was sent is known, packet by packet. Needs root.

mod documents;
mod layers;
mod round_trips;

use std::path::Path;
use std::process::Command;

use etherparse::PacketBuilder;
use tscap_flows::schema::{FlowReport, PathDelay, Quality};
use tscap_report::saved::Saved;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_on, generate_on, qos_on};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::root;

#[track_caller]
fn quality(text: &str) -> Quality {
    match Saved::from_json(text) {
        Ok(Saved::Quality(quality)) => {
            assert!(quality.account.adds_up(), "{:?}", quality.account);
            *quality
        }
        other => panic!("{other:?}\n{text}"),
    }
}

/// Waits until it has told of so many packets, and ends it.
#[track_caller]
fn end(running: Capture, packets: u64) -> Quality {
    running.wait_event_with("qos", |event| {
        event["account"]["seen"]
            .as_u64()
            .is_some_and(|seen| seen >= packets)
    });
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    quality(&finished.stdout)
}

fn of_file(path: &Path, arguments: &[&str]) -> Quality {
    let mut tscap = Command::new(tscap_path());
    tscap
        .args(["qos", "--json"])
        .args(arguments)
        .arg("-r")
        .arg(path);
    let done = run(&mut tscap, SHORT);
    assert!(done.status.success(), "{}", done.stderr);
    quality(&done.stdout)
}

/// A packet of RTP of G.729.
fn rtp(number: u16, ssrc: u32) -> Vec<u8> {
    let mut payload = vec![0x80, 18];
    payload.extend(number.to_be_bytes());
    payload.extend((u32::from(number) * 160).to_be_bytes());
    payload.extend(ssrc.to_be_bytes());
    payload.resize(98, 0);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64)
        .udp(5_004, 5_004)
        .write(&mut frame, &payload)
        .expect("a frame");
    frame
}

/// Two sources by turns: 1 loses 10 to 12 and 50, has 20 twice and 30 behind 31; 2 is whole.
fn script() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for number in 0..100 {
        match number {
            10..=12 | 50 => {}
            20 => frames.extend([rtp(20, 1), rtp(20, 1)]),
            30 => frames.push(rtp(31, 1)),
            31 => frames.push(rtp(30, 1)),
            _ => frames.push(rtp(number, 1)),
        }
        frames.push(rtp(number, 2));
    }
    frames
}

fn source(quality: &Quality, ssrc: u32) -> &FlowReport {
    let name = format!("ssrc {ssrc:#010x}");
    let mut flows = quality.flows.iter();
    let flow = flows.find(|flow| flow.name.ends_with(&name));
    flow.unwrap_or_else(|| panic!("{name}: {:?}", quality.flows))
}

/// Live, and of a capture beside it: what the script did, exactly.
#[test]
fn scripted_loss_copies_and_swaps_are_told_exactly() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("qos-script");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["--keep-raw"]).ready();
    let live = qos_on(&bench.rx)
        .with(["--flow", "rtp", "--sort", "loss"])
        .ready();
    let frames = script();
    PacketSocket::open(&bench.tx).send_all(&frames);
    let live = end(live, frames.len() as u64);
    capture.stop().success();
    let file = of_file(&path, &["--flow", "rtp", "--sort", "loss"]);
    for found in [&live, &file] {
        assert_eq!(found.account.in_flows, frames.len() as u64);
        let (one, two) = (source(found, 1), source(found, 2));
        let loss = one.loss.expect("numbers");
        assert_eq!((one.packets, loss.distinct, loss.duplicates), (97, 96, 1));
        assert_eq!((loss.lost, loss.loss_periods, loss.longest_loss), (4, 2, 3));
        let reordering = one.reordering.expect("numbers");
        assert_eq!(reordering.reordered, 1);
        assert_eq!(reordering.extent.expect("one").max, 1);
        let loss = two.loss.expect("numbers");
        assert_eq!((two.packets, loss.lost, loss.duplicates), (100, 0, 0));
        assert_eq!(one.jitter.expect("a clock").n, 96);
        let voice = one.voice.expect("a codec");
        assert_eq!(voice.path, PathDelay::Unknown);
        assert!((voice.voice.lost_percent - 4.0).abs() < 1e-9, "{voice:?}");
        let better = two.voice.expect("a codec").voice;
        assert!(better.r > voice.voice.r && better.mos > voice.voice.mos);
        let gap = one.inter_arrival.expect("several packets");
        assert!(gap.n == 96 && gap.bound_ns.is_some(), "{gap:?}");
        // The one that has lost comes first.
        assert_eq!(found.flows[0].name, one.name);
    }
}

/// Streams of tscap gen have delays; a filter leaves out one of three.
#[test]
fn streams_have_delays_with_a_bound() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("qos-gen");
    let live = qos_on(&bench.rx)
        .with(["--flow", "gen", "-Q", "in", "--voice-codec", "g711"])
        .with(["udp src portrange 49152-49153"])
        .ready();
    let sent = generate_on(&bench.tx)
        .with(["--rate", "3k", "--flows", "3", "-c", "1500"])
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let quality = end(live, 1_000);
    assert_eq!(quality.account.in_flows, 1_000);
    assert!(quality.account.unrecorded["filtered"] >= 500);
    assert_eq!(quality.flows.len(), 2);
    for flow in &quality.flows {
        let delay = flow.delay.expect("sent and received");
        assert_eq!(
            (flow.packets, delay.n, flow.loss.expect("numbers").lost),
            (500, 500, 0)
        );
        assert!(delay.min_ns > 0 && delay.bound_ns.is_some(), "{delay:?}");
        let (pdv, ipdv) = (flow.pdv.expect("delays"), flow.ipdv.expect("neighbours"));
        assert_eq!((pdv.n, pdv.min_ns), (500, 0));
        assert_eq!(ipdv.figures.n, 499);
        let voice = flow.voice.expect("a codec");
        assert_eq!(voice.path, PathDelay::Measured);
        assert!((voice.voice.path_ms - delay.min_ns as f64 / 1e6).abs() < 1e-6);
        assert_eq!(ipdv.tsc_pairs + ipdv.tai_pairs, 499);
    }
}

/// A table of two flows, three flows in turns: each packet is one of a flow that made room.
#[test]
fn flows_that_make_room_are_counted() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("qos-room");
    let live = qos_on(&bench.rx)
        .with(["--max-flows", "2", "-Q", "in", "-c", "300", "udp"])
        .ready();
    let sent = generate_on(&bench.tx)
        .with(["--rate", "3k", "--flows", "3", "-c", "300"])
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    // By itself, when it has seen as many.
    let finished = live.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let quality = quality(&finished.stdout);
    let evicted = quality.account.evicted;
    assert_eq!((evicted.flows, evicted.unlisted), (298, 296));
    let listed: u64 = quality.flows.iter().map(|flow| flow.packets).sum();
    assert_eq!((quality.flows.len(), listed), (4, 4));
    assert_eq!(listed + evicted.unlisted_packets, quality.account.in_flows);
}

/// It ends with its interface, and says so.
#[test]
fn a_measurement_ends_with_its_interface() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("qos-gone");
    let live = qos_on(&bench.rx).ready();
    bench.rx.netns.ip(&["link", "del", &bench.rx.name]);
    let finished = live.wait();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let quality = quality(&finished.stdout);
    assert!(quality.about.partial);
    assert!(quality.warnings.iter().any(|it| it.contains("is gone")));
}
