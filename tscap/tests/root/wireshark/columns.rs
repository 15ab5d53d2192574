//! The fields of the Lua plugin, beside what is in the file.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use tscap_file::pcapng::{Record, records};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers::tshark_lines;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;
use tscap_testkit::wait;

use super::user::{LIMIT, PROGRAMS, Pings, User};
use tscap_testkit::shown::root;

/// The plugin's fields of each packet, and Wireshark's own drop count.
fn columns(path: &Path) -> Vec<Vec<String>> {
    let plugin = root().join("packaging/wireshark/tscap.lua");
    let plugin = format!("lua_script:{}", plugin.display());
    let fields = ["clock", "raw", "bound", "lost"].map(|name| format!("tscap.{name}"));
    let mut arguments = vec!["-X", &plugin, "-T", "fields", "-e", "frame.drop_count"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let lines = tshark_lines(path, &arguments);
    lines
        .iter()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

#[test]
fn the_columns_are_what_is_in_the_file() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("columns");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1514);
    let socket = PacketSocket::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path)
        .with(["--ring-size", "128K", "--keep-raw"])
        .ready();
    // More than the ring holds, then some of which one reports what was lost.
    capture.freeze();
    socket.send(&frame, 0..1_000, 0);
    capture.thaw();
    wait::until("the ring in the file", LIMIT, || {
        (files::length(&path) >= 96 * 1024).then_some(())
    });
    socket.send_paced(&frame, 1_000..1_020, 0, Duration::from_millis(2));
    capture.stop().success();

    let recording = Recording::read(&path);
    let statistics = &recording.last_statistics(0).custom;
    let bound = statistics["clock"]["host_bound_ns"].to_string();
    let lost = recording.reported_drops().to_string();
    assert_eq!(statistics["outcomes"]["ring_full"].to_string(), lost);
    assert_ne!(lost, "0");
    let raw = raw_stamps(&path);
    let found = columns(&path);
    assert_eq!(found.len(), recording.packets.len());
    for ((columns, packet), raw) in found.iter().zip(&recording.packets).zip(&raw) {
        let drops = packet.drops.map(|drops| drops.to_string());
        let wanted = [&drops.unwrap_or_default(), "ktime", raw, &bound, &lost];
        assert_eq!(columns, &wanted);
    }
}

fn raw_stamps(path: &Path) -> Vec<String> {
    let file = File::open(path).expect("a capture");
    let all = records(file)
        .expect("pcapng")
        .map(|record| record.expect("a record"));
    let raw = all.filter_map(|record| match record {
        Record::Packet(packet) => Some(packet.raw.expect("a raw stamp").0.to_string()),
        _ => None,
    });
    raw.collect()
}

#[test]
fn other_captures_have_no_columns() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("foreign");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..3, 0);
    capture.stop().success();
    let found = columns(&path);
    assert_eq!(found.len(), 3);
    // No raw stamps without --keep-raw.
    assert!(found.iter().all(|it| it[1] == "ktime" && it[2].is_empty()));
    // pcap has no options.
    let plain = folder.path().join("out.pcap");
    let mut editcap = std::process::Command::new("editcap");
    editcap.args(["-F", "nsecpcap"]).arg(&path).arg(&plain);
    tscap_testkit::command::must(&mut editcap);
    let found = columns(&plain);
    assert!(found.iter().all(|it| it.concat().is_empty()), "{found:?}");
}

#[test]
fn a_live_capture_has_columns_too() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("live");
    bench.add_addresses();
    let user = User::new();
    let plugin = format!("lua_script:{}", user.plugin().display());
    let _pings = Pings::on(&bench);
    let arguments = [
        "-i",
        "tscap-rx0",
        "-o",
        "extcap.tscap_rx0.keepraw:true",
        "-c",
        "5",
        "-X",
        &plugin,
        "-T",
        "fields",
        "-e",
        "tscap.clock",
        "-e",
        "tscap.raw",
    ];
    let done = user.tshark(&bench.rx.netns, &arguments);
    let raw: Vec<u64> = done
        .stdout
        .lines()
        .filter_map(|line| line.split_once("ktime\t")?.1.trim().parse().ok())
        .collect();
    assert_eq!(raw.len(), 5, "{done:?}");
    assert!(raw.is_sorted(), "{raw:?}");
}
