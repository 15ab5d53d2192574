//! What the frames are: headers, checksums, payloads, for both senders.

use std::path::Path;

use serde_json::Value;
use tscap_clock::{StampPath, StampSource};
use tscap_common::stream::{STAMP_MASK, StreamHeader};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_on, generate_on};
use tscap_testkit::command::must;
use tscap_testkit::files;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;

const PROGRAMS: [&str; 3] = ["ip", "ethtool", "tshark"];
/// Enough for the kernel to use the pages of live frames again and again.
const FRAMES: u64 = 3000;
const FLOWS: u64 = 3;

#[test]
fn every_layout_arrives_whole() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("layouts");
    let layouts: [(&[&str], u32, usize); 4] = [
        (&[], 64, 42),
        (&["--vlan", "100"], 97, 46),
        (&["--ipv6"], 84, 62),
        (&["--vlan", "7", "--ipv6"], 1512, 66),
    ];
    for sender in ["native", "packet"] {
        for (arguments, size, payload_at) in layouts {
            let folder = files::folder();
            let path = folder.path().join("out.pcapng");
            let capture = capture_on(&bench.rx, &path).ready();
            let size_text = size.to_string();
            let sent = generate_on(&bench.tx)
                .with(["--flat-out", "-c", "3000", "--flows", "3", "--size"])
                .with([size_text.as_str(), "--sender", sender])
                .with(arguments)
                .run();
            assert_eq!(sent.code, Some(0), "{}", sent.stderr);
            check_ready(&sent.events("ready")[0], sender);
            let end = sent.end.expect("a summary");
            assert_eq!(end["sent"], FRAMES, "{sender} {arguments:?}");
            let captured = capture.stop();
            assert_eq!(captured.success().written, FRAMES, "{sender}");
            check(&path, size, payload_at);
            check_by_tshark(&path);
        }
    }
}

/// It says how the stamps in the payloads are read.
fn check_ready(ready: &Value, sender: &str) {
    let path = ready["tsc_path"].as_str().expect("a path");
    let ordered = match StampPath::by_function(path) {
        Some(path) if sender == "native" => {
            assert_eq!(path.source(), StampSource::Tsc);
            path.is_ordered()
        }
        _ => {
            assert_eq!((sender, path), ("packet", "RDTSC in user space"));
            true
        }
    };
    assert_eq!(ready["ordered"], ordered, "{ready}");
    assert!(ready["tsc_bound_ns"].is_u64(), "{ready}");
}

/// Every frame once and in order, with stamps that grow.
fn check(path: &Path, size: u32, payload_at: usize) {
    let recording = Recording::read(path);
    let mut last: Option<StreamHeader> = None;
    for (number, packet) in (0u64..).zip(&recording.packets) {
        assert_eq!(packet.origlen, size);
        let header = StreamHeader::of(&packet.data[payload_at..]);
        let header = header.unwrap_or_else(|| panic!("frame {number}: {:02x?}", packet.data));
        assert_eq!(u64::from(header.flow), number % FLOWS);
        assert_eq!(u64::from(header.seq), number / FLOWS);
        let port = u16::from_be_bytes([packet.data[payload_at - 8], packet.data[payload_at - 7]]);
        assert_eq!(port, 49_152 + header.flow);
        let rest = &packet.data[payload_at + 22..];
        assert!(rest.iter().all(|byte| *byte == 0), "frame {number}");
        // TAI is whole seconds from the file's clock; the bench is not leap-aware.
        let delay = packet.nanos.wrapping_sub(header.tai) & STAMP_MASK;
        let past_second = delay % 1_000_000_000;
        assert!(
            past_second < 900_000_000,
            "received {delay} ns after the sending"
        );
        if let Some(last) = last {
            assert_eq!(header.run, last.run);
            assert!(
                header.tai >= last.tai && header.tsc >= last.tsc,
                "{header:?} {last:?}"
            );
        }
        assert_ne!(header.tsc, 0);
        last = Some(header);
    }
}

/// A foreign reader finds UDP with good checksums in every frame.
fn check_by_tshark(path: &Path) {
    let count = |filter: &str| {
        let mut tshark = std::process::Command::new("tshark");
        tshark.args([
            "-o",
            "udp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ]);
        let lines = must(tshark.arg("-r").arg(path).args(["-Y", filter]));
        lines.lines().count() as u64
    };
    assert_eq!(count("udp.checksum.status == 1"), FRAMES);
    assert_eq!(count("ip.checksum.status == 0 || _ws.malformed"), 0);
}

#[test]
fn addresses_are_as_given() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("addresses");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    let sent = generate_on(&bench.tx)
        .with(["--rate", "1k", "-c", "20", "--size", "100"])
        .with([
            "--src",
            "10.1.2.3",
            "--dst",
            "10.4.5.6",
            "--dst-port",
            "4711",
        ])
        .with([
            "--src-mac",
            "02:00:00:00:00:aa",
            "--dst-mac",
            "02:00:00:00:00:bb",
        ])
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    capture.stop().success();
    let mut tshark = std::process::Command::new("tshark");
    tshark.arg("-r").arg(&path).args([
        "-Y",
        concat!(
            "ip.src == 10.1.2.3 && ip.dst == 10.4.5.6 && udp.dstport == 4711 && ",
            "eth.src == 02:00:00:00:00:aa && eth.dst == 02:00:00:00:00:bb && frame.len == 100"
        ),
    ]);
    assert_eq!(must(&mut tshark).lines().count(), 20);
}
