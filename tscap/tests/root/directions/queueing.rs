//! What a queueing discipline drops is in tscap's file and not in tcpdump's, unless tscap
//! stamps before the driver; what goes round it is in none.

use std::net::UdpSocket;
use std::time::Duration;

use serde_json::Value;
use tscap_capture::DirectionSummary;
use tscap_file::accounting::Direction;
use tscap_testkit::bench::Bench;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::root::root_with;
use tscap_testkit::wait;

use super::versus::{Compared, Versus};

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "tcpdump", "capinfos", "tc"];

/// Counters of the queueing discipline of an interface.
fn counters(port: &Port) -> Value {
    let text = port
        .netns
        .must("tc", &["-s", "-j", "qdisc", "show", "dev", &port.name]);
    let all: Value = serde_json::from_str(&text).expect("tc writes JSON");
    all[0].clone()
}

/// Datagrams that are sent.
const DATAGRAMS: u64 = 200;

/// Sends more than a discipline of 1 Mbit/s lets through; with what it has dropped.
fn throttled(tag: &str, options: &[&str]) -> (Compared, u64) {
    let bench = Bench::new(tag);
    bench.add_addresses();
    let mac = bench.tx.mac_text();
    let neighbour = ["neigh", "add", "10.9.0.1", "lladdr", &mac, "dev", "rx0"];
    bench.rx.netns.ip(&neighbour);
    let discipline = "qdisc add dev rx0 root tbf rate 1mbit burst 2000 limit 6000";
    let discipline: Vec<_> = discipline.split(' ').collect();
    bench.rx.netns.must("tc", &discipline);
    // Nobody answers.
    let bind = || UdpSocket::bind("10.9.0.1:4000").expect("bind");
    let _taker = bench.tx.netns.enter(bind);
    let versus = Versus::start(&[&bench.rx], options);
    bench.rx.netns.enter(|| {
        let socket = UdpSocket::bind("10.9.0.2:4000").expect("bind");
        for number in 0..DATAGRAMS {
            let mut datagram = vec![0; 958];
            datagram[..8].copy_from_slice(&u64::to_be_bytes(number));
            let sent = socket.send_to(&datagram, "10.9.0.1:4000");
            assert_eq!(sent.expect("send"), datagram.len());
        }
    });
    wait::until("an empty queue", Duration::from_secs(30), || {
        (counters(&bench.rx)["backlog"] == 0).then_some(())
    });
    versus.last_from(&[&bench.tx, &bench.rx]);
    let compared = versus.stop();
    compared.side(Direction::In).is_same("in");
    let dropped = counters(&bench.rx)["drops"].as_u64().expect("drops");
    assert!(
        dropped > 0 && dropped < DATAGRAMS,
        "{dropped} of {DATAGRAMS} were dropped"
    );
    (compared, dropped)
}

#[test]
fn the_file_holds_what_a_queueing_discipline_dropped() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let (compared, dropped) = throttled("dir-tbf", &[]);
    let out = compared.side(Direction::Out);
    assert_eq!(out.frames() as u64, DATAGRAMS);
    assert_eq!(out.theirs.len() as u64 + dropped, out.ours.len() as u64);
    // The rest is the same, in the same order, and each was stamped before it waited.
    let mut ours = out.ours.iter();
    for seen in &out.theirs {
        let ours = ours.find(|it| it.data == seen.data && it.origlen == seen.origlen);
        let ours = ours.expect("a frame of tcpdump's, in its order");
        assert!(
            ours.nanos <= seen.nanos,
            "{} after {}",
            ours.nanos,
            seen.nanos
        );
    }
    let waited = out.theirs.last().expect("one").nanos - out.ours[0].nanos;
    assert!(waited > 10_000_000, "they waited for {waited} ns in all");
}

#[test]
fn before_the_driver_the_file_holds_what_left_the_queue() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let (compared, dropped) = throttled("dir-tbf-driver", &["--egress-point", "driver"]);
    compared.are_same_before_the_driver();
    let out = compared.side(Direction::Out);
    // And a last one.
    let left = DATAGRAMS - dropped;
    assert_eq!(out.theirs.len() as u64, left + 1);
    // Stamped as they left: a datagram of 1,000 bytes takes 8 ms at this rate.
    let stamps: Vec<_> = out.ours.iter().map(|it| it.nanos).collect();
    let lasted = stamps.last().expect("one") - stamps[0];
    let least = out.frames() as u64 / 2 * 8_000_000;
    assert!(lasted > least, "{left} of them left within {lasted} ns");
    // tcpdump's tap is just before the tracepoint.
    let mut theirs = out.theirs.iter();
    for ours in &out.ours {
        let seen = theirs.find(|it| it.data == ours.data).expect("in order");
        assert!(ours.nanos >= seen.nanos, "{} < {}", ours.nanos, seen.nanos);
    }
}

#[test]
fn what_goes_round_the_queueing_discipline_is_seen_by_none() {
    bypassed(&[], None);
    bypassed(&["-v"], Some("tcx egress"));
    bypassed(&["--egress-point", "driver"], Some("driver egress"));
}

/// Only at `reported` tscap says what the interface counted.
fn bypassed(options: &[&str], reported: Option<&str>) {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-bypass");
    let frame = Frame::new(&bench.rx, &bench.tx, 100);
    let frames = |numbers: std::ops::Range<u64>| -> Vec<_> {
        numbers.map(|number| frame.bytes(number)).collect()
    };
    let versus = Versus::start(&[&bench.rx], options);
    let before = bench.tx.received();
    PacketSocket::open(&bench.rx).send_all(&frames(0..50));
    PacketSocket::open_bypassing(&bench.rx).send_all(&frames(50..120));
    PacketSocket::open(&bench.rx).send_all(&frames(120..130));
    versus.last_from(&[&bench.tx, &bench.rx]);
    let compared = versus.stop();
    compared.are_same();
    let out = compared.side(Direction::Out);
    let numbers: Vec<_> = out.ours.iter().map(|it| frame.number(&it.data)).collect();
    let seen: Vec<_> = (0..50).chain(120..130).collect();
    assert_eq!(numbers[..60], seen);
    assert_eq!(out.frames(), 60);
    // All of them left, and a last one, as the interface knows.
    assert_eq!(bench.tx.received() - before, 131);
    let [received, sent] = &compared.summary.interfaces[0].directions[..] else {
        panic!("{:?}", compared.summary.interfaces);
    };
    let counted = |it: &DirectionSummary| it.interface.map(|it| (it.frames, it.dropped));
    assert_eq!((sent.totals.seen, counted(sent)), (61, Some((131, 0))));
    assert_eq!((received.totals.seen, counted(received)), (1, Some((1, 0))));
    let said = compared.reported.lines();
    let mut said = said.filter(|it| it.contains("the interface counted 131 sent: 70 more"));
    let said = said
        .next()
        .map(|it| it.contains(reported.unwrap_or_default()));
    assert_eq!(said, reported.map(|_| true), "{}", compared.reported);
    let statistics = &compared.last_statistics;
    assert_eq!(statistics["counted_out"]["interface_frames"], 131);
    assert_eq!(statistics["counted_in"]["interface_frames"], 1);
}
