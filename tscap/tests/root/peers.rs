//! The same traffic by tscap and by tcpdump. Needs root.

use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::alone_with;
use tscap_testkit::tcpdump::Tcpdump;

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "capinfos", "tshark", "tcpdump"];

/// Frames with every length from a header to the MTU, and with tags.
fn kinds(bench: &Bench) -> Vec<Frame> {
    let plain = |size| Frame::new(&bench.tx, &bench.rx, size);
    let mut kinds: Vec<Frame> = [14, 38, 60, 61, 62, 63, 128, 590, 1499, 1514]
        .map(plain)
        .into();
    kinds.push(plain(60).tagged(0x8100, 42));
    kinds.push(plain(200).tagged(0x88a8, 7).tagged(0x8100, 42));
    kinds
}

#[test]
fn bytes_and_order_equal_and_stamps_close() {
    const ROUNDS: u64 = 500;
    const MEDIAN_NS: u64 = 20_000;
    const P95_NS: u64 = 100_000;
    let Some(_lock) = alone_with("compares times of two programs", &PROGRAMS) else {
        return;
    };
    for clock in ["ktime", "tai"] {
        let bench = Bench::new("peers");
        let folder = files::folder();
        let path = folder.path().join("tscap.pcapng");
        let kinds = kinds(&bench);
        let total = ROUNDS * kinds.len() as u64;

        let capture = capture_on(&bench.rx, &path)
            .with(["--clock", clock])
            .ready();
        let tcpdump = Tcpdump::listen(&bench.rx, &folder.path().join("tcpdump.pcap"), total);
        let socket = PacketSocket::open(&bench.tx);
        let mut number = 0;
        for _ in 0..ROUNDS {
            for kind in &kinds {
                socket.send_paced(kind, number..number + 1, 0, Duration::ZERO);
                number += 1;
            }
        }
        let theirs = tcpdump.finish();
        let finished = capture.stop();

        assert_eq!(finished.success().written, total);
        let ours = Recording::read(&path).packets;
        assert_eq!((ours.len() as u64, theirs.len() as u64), (total, total));
        let mut differences = Vec::new();
        for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours.data, theirs.data, "frame {number}");
            assert_eq!(ours.origlen, theirs.origlen, "frame {number}");
            differences.push(ours.nanos.abs_diff(theirs.nanos));
        }
        differences.sort_unstable();
        let quantile = |percent: usize| differences[differences.len() * percent / 100];
        println!(
            "{clock}: median {} ns, 95 % {} ns",
            quantile(50),
            quantile(95)
        );
        assert!(
            quantile(50) < MEDIAN_NS,
            "{clock}: median {} ns",
            quantile(50)
        );
        assert!(quantile(95) < P95_NS, "{clock}: 95 % {} ns", quantile(95));
        peers::agree_on(&path, total);
    }
}

#[test]
fn tshark_shows_the_times_and_lengths_that_are_in_the_file() {
    let Some(_lock) = alone_with("compares times of two programs", &PROGRAMS) else {
        return;
    };
    let bench = Bench::new("tshark");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path)
        .with(["--packet-meta", "-s", "100"])
        .ready();
    let socket = PacketSocket::open(&bench.tx);
    for kind in kinds(&bench) {
        socket.send(&kind, 0..10, 0);
    }
    capture.stop().success();

    let fields = [
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "frame.interface_name",
    ];
    let direction = "frame.packet_flags_direction";
    let arguments: Vec<&str> = ["-T", "fields"]
        .into_iter()
        .chain(
            fields
                .iter()
                .chain([&direction])
                .flat_map(|field| ["-e", field]),
        )
        .collect();
    let lines = peers::tshark_lines(&path, &arguments);
    let packets = Recording::read(&path).packets;
    assert_eq!(lines.len(), packets.len());
    for (line, packet) in lines.iter().zip(&packets) {
        let time = format!(
            "{}.{:09}",
            packet.nanos / 1_000_000_000,
            packet.nanos % 1_000_000_000
        );
        let expected = format!("{time}\t{}\t{}\trx0\t", packet.origlen, packet.data.len());
        let inbound = line.strip_prefix(&expected);
        let inbound = inbound.unwrap_or_else(|| panic!("{line:?} is not {expected:?}…"));
        assert!(
            ["1", "0x00000001"].contains(&inbound),
            "direction {inbound:?}"
        );
    }
}
