//! What is refused before a frame is sent.

use std::sync::Arc;

use tscap_streams::{Content, content};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, generate_on};
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::root;
use tscap_testkit::tun::Tun;
use tscap_testkit::wait::until;

const FEW: [&str; 4] = ["--rate", "1k", "-c", "10"];

#[test]
fn only_veth_and_tap_are_ours_to_send_on() {
    let Some(_lock) = root() else { return };
    let netns = Arc::new(Netns::new("ours"));
    netns.ip(&["link", "set", "lo", "up"]);
    let lo = Port::find(&netns, "lo");
    let before = lo.received();
    let refused = generate_on(&lo).with(FEW).run();
    refused.failure(
        1,
        &[
            "cannot send on lo",
            "neither a veth nor a tap",
            "--yes-send-here",
        ],
    );
    assert_eq!(lo.received(), before);

    let sent = generate_on(&lo).with(FEW).with(["--yes-send-here"]).run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(lo.received() - before, 10);
    assert!(sent.stderr.contains("(packet)"), "{}", sent.stderr);
    let native = ["--yes-send-here", "--sender", "native"];
    let refused = generate_on(&lo).with(FEW).with(native).run();
    refused.failure(1, &["native frames on lo", "for veth", "--sender packet"]);
}

#[test]
fn a_tap_is_ours_to_send_on() {
    let Some(_lock) = root() else { return };
    let netns = Arc::new(Netns::new("tap"));
    let mut tap = Tun::tap(&netns, "tap0");
    let finished = generate_on(&tap.port).with(FEW).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.events("ready")[0]["sender"], "packet");
    assert_eq!(finished.end.as_ref().expect("a summary")["sent"], 10);
    // The kernel sends of its own: neighbour discovery.
    let mut next_of_ours = || {
        while let Some(frame) = tap.sent() {
            if let Content::Stream(header, _) = content(&frame, frame.len() as u32) {
                return Some(header.seq);
            }
        }
        None
    };
    for number in 0..10 {
        let seq = until("a frame in the tap", LIMIT, &mut next_of_ours);
        assert_eq!(seq, number);
    }
    assert_eq!(next_of_ours(), None);
}

#[test]
fn interfaces_that_cannot_send() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("cannot");
    let missing = Port {
        name: "tx9".into(),
        ..bench.tx.clone()
    };
    let refused = generate_on(&missing).with(FEW).run();
    refused.failure(1, &["cannot send on tx9", "no such interface"]);

    let tun = Tun::new(&bench.tx.netns, "tun0");
    let refused = generate_on(&tun.port).with(FEW).run();
    refused.failure(1, &["tun0", "without an Ethernet header"]);

    bench.tx.set(&["down"]);
    let refused = generate_on(&bench.tx).with(FEW).run();
    refused.failure(1, &["tx0: it is down", "ip link set dev tx0 up"]);
}

#[test]
fn frames_that_do_not_fit() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("fit");
    let _peer = Attached::dropping(&bench.rx);
    let with_size = |size: &str, more: &[&str]| {
        let arguments = generate_on(&bench.tx).with(FEW).with(["--size", size]);
        arguments.with(more).run()
    };
    assert_eq!(with_size("1514", &[]).code, Some(0));
    assert_eq!(with_size("1518", &["--vlan", "3"]).code, Some(0));
    let refused = with_size("64,1515", &[]);
    refused.failure(1, &["1515 bytes on tx0", "MTU of 1500", "mtu 1501"]);
    let refused = with_size("64", &["--cpu", "4096"]);
    refused.failure(1, &["CPU 4096", "--cpu one of these"]);
}
