//! Only frames that match the filter are written, and the others are counted.

use std::process::Command;

use nix::sys::signal::Signal;

use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, root_with};

/// Every fourth frame by its number, whose last byte this is.
const EVERY_FOURTH: &str = "ether[37] & 3 = 0";

#[test]
fn frames_that_match_are_written_whole_and_the_others_are_counted() {
    const FRAMES: u64 = 10_000;
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("filter");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 200);
    for clock in ["ktime", "tai", "tsc"] {
        for mode in ["xdp", "generic", "tcx"] {
            let case = format!("{clock} {mode}");
            let options = ["--clock", clock, "--force", "--hook", mode];
            let capture = capture_on(&bench.rx, &path)
                .with(options)
                .with([EVERY_FOURTH])
                .ready();
            let sent = PacketSocket::open(&bench.tx).send(&frame, 0..FRAMES, 0);
            let finished = capture.stop();

            let summary = finished.success();
            assert_eq!((sent, summary.seen), (FRAMES, FRAMES), "{case}");
            assert_eq!(summary.written, FRAMES / 4, "{case}");
            assert_eq!(
                summary.outcomes,
                [(Outcome::Filtered, FRAMES - FRAMES / 4)].into(),
                "{case}"
            );
            let filter = summary.filter.expect("it has one");
            assert_eq!(filter.expression, EVERY_FOURTH);
            assert!(filter.compiler.contains("libpcap"), "{filter:?}");

            let recording = Recording::read(&path);
            for (index, packet) in recording.packets.iter().enumerate() {
                frame.check(&packet.data, 4 * index as u64);
                assert_eq!((packet.data.len(), packet.drops), (200, None), "{case}");
            }
            let described = recording.interfaces[0].filter.as_deref();
            assert_eq!(described, Some(EVERY_FOURTH));
            let compiler = &recording.interfaces[0].custom["filter_compiler"];
            assert_eq!(*compiler, filter.compiler);
            let last = recording.statistics.last().expect("one at the end");
            assert_eq!(last.received, Some(FRAMES));
            assert_eq!(last.filter_accepted, Some(FRAMES / 4));
            assert_eq!((last.os_drop, last.delivered), (Some(0), Some(FRAMES / 4)));
            assert_eq!(last.custom["outcomes"]["filtered"], FRAMES - FRAMES / 4);
        }
    }
}

/// The netmask is that of the interface, as tcpdump asks for it.
#[test]
fn a_broadcast_address_is_that_of_the_interfaces_network() {
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("broadcast");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let to = |last: [u8; 4]| {
        let mut frame = vec![0_u8; 60];
        frame[..6].copy_from_slice(&bench.rx.mac);
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[30..34].copy_from_slice(&last);
        frame
    };
    let addresses = [[10, 9, 0, 2], [10, 9, 0, 255], [10, 9, 255, 255], [255; 4]];
    let written = || {
        let capture = capture_on(&bench.rx, &path)
            .with(["ip", "broadcast"])
            .ready();
        PacketSocket::open(&bench.tx).send_all(&addresses.map(to));
        let summary = capture.stop().success();
        assert_eq!(summary.seen, addresses.len() as u64);
        let packets = Recording::read(&path).packets;
        let last = |data: &[u8]| <[u8; 4]>::try_from(&data[30..34]).expect("four bytes");
        packets.iter().map(|it| last(&it.data)).collect::<Vec<_>>()
    };
    assert_eq!(written(), [[255; 4]], "no network");
    let address = |prefix: &str| bench.rx.netns.ip(&["address", "add", prefix, "dev", "rx0"]);
    address("10.9.0.1/24");
    // The bits of the host alone decide.
    assert_eq!(written(), [[10, 9, 0, 255], [10, 9, 255, 255], [255; 4]]);
    bench.rx.netns.ip(&["address", "flush", "dev", "rx0"]);
    address("10.9.0.1/16");
    assert_eq!(written(), [[10, 9, 255, 255], [255; 4]]);
}

/// Frames of the two alternate on one CPU, so that each count is settled all the time.
#[test]
fn two_interfaces_have_counts_of_their_own() {
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("filter2");
    let (tx1, rx1) = bench.add_pair(1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frames = [
        Frame::new(&bench.tx, &bench.rx, 100),
        Frame::new(&tx1, &rx1, 100),
    ];
    let capture = capture(&bench.rx.netns)
        .on(&bench.rx)
        .on(&rx1)
        .to(&path)
        .with([EVERY_FOURTH])
        .ready();
    let sockets = [PacketSocket::open(&bench.tx), PacketSocket::open(&tx1)];
    for round in 0..500 {
        sockets[0].send(&frames[0], 3 * round..3 * round + 3, 0);
        sockets[1].send(&frames[1], round..round + 1, 0);
    }
    let summary = capture.stop().success();
    let counts = summary.interfaces.iter().map(|it| {
        let filtered = it.outcomes[Outcome::Filtered];
        (it.seen, it.written, filtered)
    });
    assert!(
        counts.eq([(1500, 375, 1125), (500, 125, 375)]),
        "{summary:?}"
    );
    assert_eq!(summary.outcomes[Outcome::Filtered], 1500);
}

/// A frame is longer than its first buffer, and is decided on by its last bytes.
#[test]
fn the_whole_of_a_jumbo_frame_counts() {
    const FRAMES: u64 = 1000;
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::with_mtu("filterjumbo", 9000);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 9000);
    let capture = capture_on(&bench.rx, &path)
        .with(["-s", "100", "ether[8998] & 1 = 0 and len = 9000"])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..FRAMES, 0);
    let summary = capture.stop().success();
    assert_eq!(summary.written, FRAMES / 2, "{:?}", summary.outcomes);
    let recording = Recording::read(&path);
    for (index, packet) in recording.packets.iter().enumerate() {
        assert_eq!(frame.number(&packet.data), 2 * index as u64);
        assert_eq!((packet.data.len(), packet.origlen), (100, 9000));
    }
}

/// What does not match takes no room: a small ring loses nothing of it.
#[test]
fn frames_flat_out_that_do_not_match_are_no_drops() {
    const FRAMES: u64 = 1_000_000;
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("filterfast");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let capture = capture_on(&bench.rx, &path)
        .with(["--ring-size", "128K", "tcp port 443"])
        .ready();
    let sent = LiveSender::open(&bench.tx).send(&frame, FRAMES, 0);
    let summary = capture.stop().success();
    assert_eq!((summary.seen, summary.written), (sent, 0));
    assert_eq!(summary.outcomes, [(Outcome::Filtered, sent)].into());
}

#[test]
fn a_file_and_bytecode_of_tcpdump_filter_alike() {
    const FRAMES: u64 = 100;
    let Some(_lock) = root_with(&["ip", "ethtool", "tcpdump"]) else {
        return;
    };
    let bench = Bench::new("filterfile");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let [expression, bytecode] = ["expression", "bytecode"].map(|it| folder.path().join(it));
    std::fs::write(&expression, format!("{EVERY_FOURTH}\n")).unwrap();
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-y", "EN10MB", "-ddd", EVERY_FOURTH]);
    let compiled = tcpdump.output().expect("tcpdump runs");
    std::fs::write(&bytecode, compiled.stdout).unwrap();
    for (option, file) in [("-F", &expression), ("--filter-bytecode", &bytecode)] {
        let capture = capture_on(&bench.rx, &path)
            .with([option.as_ref(), file.as_os_str()])
            .ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..FRAMES, 0);
        let summary = capture.stop().success();
        assert_eq!(summary.written, FRAMES / 4, "{option}");
    }
}

#[test]
fn a_bad_filter_attaches_nothing_and_leaves_no_file() {
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("badfilter");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let bytecode = folder.path().join("bytecode");
    std::fs::write(&bytecode, "2\n40 0 0 12\n5 0 0 7\n").unwrap();
    let bytecode = bytecode.to_str().unwrap();
    for (words, part) in [
        (vec!["tcp prot 443"], "character"),
        (vec!["host no-such-host.invalid"], "no-such-host.invalid"),
        (vec!["--filter-bytecode", bytecode], "instruction"),
        (vec!["--filter-bytecode", "/dev/null"], "/dev/null"),
        (vec!["-F", "/no/such"], "/no/such"),
    ] {
        let finished = capture_on(&bench.rx, &path).with(&words).run();
        finished.failure(1, &[part]);
        assert!(!path.exists(), "{words:?}");
        assert_eq!(bench.rx.xdp_program(), None);
    }
}

#[test]
fn a_filter_that_matches_nothing_or_may_miss_tags_is_warned_of() {
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("warnfilter");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for (expression, part) in [
        ("tcp and udp", "matches no frame"),
        ("vlan 100", "VLAN tag may be beside"),
    ] {
        let plan = capture_on(&bench.rx, &path).with(["--hook", "generic"]);
        let finished = plan.with([expression]).ready().stop();
        finished.success();
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}

/// -v tells what a name stood for when it was compiled.
#[test]
fn addresses_of_names_are_told() {
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("namefilter");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path)
        .human()
        .with(["-v", "--duration", "0.1", "host", "localhost"])
        .run();
    let said = &finished.stderr;
    assert!(said.contains("localhost is 127.0.0.1"), "{said}");
    assert!(
        said.contains("  filter \"host localhost\" (libpcap"),
        "{said}"
    );
}

/// libpcap's optimiser takes more than ten seconds for so many hosts.
#[test]
fn ctrl_c_ends_a_long_compilation() {
    let Some(_lock) = root() else { return };
    let Some(_libpcap) = libpcap() else { return };
    let bench = Bench::new("longfilter");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let hosts = (0..900).map(|host| format!("host 10.{}.{}.1", host / 250, host % 250));
    let expression = hosts.collect::<Vec<_>>().join(" or ");
    let capture = capture_on(&bench.rx, &path)
        .human()
        .with([expression])
        .start();
    capture.wait_line("compiling the filter");
    let finished = capture.stop();
    assert_eq!(finished.signal, Some(Signal::SIGINT as i32));
    assert!(!path.exists());
}
