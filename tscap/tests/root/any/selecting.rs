//! What is there when the capture begins.

use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;
use tscap_testkit::tun::Tun;

use super::node::{Node, PROGRAMS, SENT, names, numbers, read};

/// Ethernet and the loopback by their headers, a tun by its packets; what is down is not
/// there.
#[test]
fn any_is_all_that_are_up() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-all");
    let (one, other) = (node.cable("one"), node.cable("other"));
    let mut tun = Tun::new(&node.here, "tun0");
    let _down = node.plug("idle");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&node.here)
        .with(["-i", "any"])
        .to(&path)
        .start();
    let ready = capture.wait_event("ready");
    assert_eq!(names(&ready), ["lo", "one", "other", "tun0"], "{ready}");
    one.exchange(0..10);
    other.exchange(10..30);
    node.here
        .must("ping", &["-q", "-c", "2", "-i", "0.01", "127.0.0.1"]);
    let mut packet = vec![0_u8; 40];
    packet[0] = 0x45;
    packet[3] = 40;
    tun.receive(&packet);
    let finished = capture.stop();
    let recording = read(&path, &finished.success());
    let of = |index, numbers: std::ops::Range<u64>| {
        let sent = numbers.clone().map(|number| number + SENT);
        assert_eq!(
            self::numbers(&recording, index),
            numbers.clone().chain(sent).collect::<Vec<_>>()
        );
    };
    of(1, 0..10);
    of(2, 10..30);
    assert_eq!(recording.packets_of(0).count(), 4);
    let tun: Vec<_> = recording.packets_of(3).collect();
    assert_eq!((tun.len(), &tun[0].data), (1, &packet));
    // Not asked for by name.
    assert_eq!(one.here.promiscuity(), 0);
}

#[test]
fn a_pattern_is_what_it_matches() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-pattern");
    let (one, other) = (node.cable("ve1"), node.cable("eth1"));
    let _third = node.cable("ve33");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here).with(["-i", "eth1", "-i", "ve?"]);
    let capture = plan.to(&path).start();
    let ready = capture.wait_event("ready");
    assert_eq!(names(&ready), ["eth1", "ve1"], "{ready}");
    assert_eq!(one.here.promiscuity(), 1);
    one.exchange(0..5);
    other.exchange(5..10);
    read(&path, &capture.stop().success());
    assert_eq!(one.here.promiscuity(), 0);
}

#[test]
fn nothing_yet_is_waited_for() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-none");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here).with(["-i", "ve*"]).to(&path);
    let capture = plan.start();
    assert!(names(&capture.wait_event("ready")).is_empty());
    let cable = node.cable("ve0");
    capture.wait_event("joined");
    cable.exchange(0..5);
    let finished = capture.stop();
    assert!(
        finished
            .stderr
            .contains("no interface is up that is ve*: waiting for one")
    );
    read(&path, &finished.success());

    // None came.
    let plan = capture_both(&node.here).with(["-i", "ab*"]).to(&path);
    let finished = plan.ready().stop();
    assert_eq!(finished.success().seen, 0);
    assert!(Recording::read(&path).interfaces.is_empty());
}

/// A filter that asks for an Ethernet header can't be had on a tun: any leaves that out.
#[test]
fn what_a_filter_cannot_be_had_on_is_left_out() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-filter");
    let cable = node.cable("one");
    let _tun = Tun::new(&node.here, "tun0");
    let address = cable.here.show();
    let mac = address["address"].as_str().expect("an address").to_owned();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here).with(["-i", "any"]).to(&path);
    let capture = plan.with(["ether", "host", &mac]).start();
    let ready = capture.wait_event("ready");
    assert_eq!(names(&ready), ["lo", "one"], "{ready}");
    cable.exchange(0..5);
    let finished = capture.stop();
    assert!(
        finished.stderr.contains("tun0 is left out: "),
        "{}",
        finished.stderr
    );
    read(&path, &finished.success());
    // By its name that is an error.
    let plan = capture_both(&node.here).with(["-i", "tun0"]).to(&path);
    plan.with(["ether", "host", &mac])
        .run()
        .failure(1, &["filter"]);
}

/// A device that carries neither Ethernet frames nor IP packets is left out, and said once,
/// whatever else the kernel tells of it.
#[test]
fn what_cannot_be_captured_is_left_out_aloud() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-types");
    let cable = node.cable("one");
    let tun = Tun::new(&node.here, "tun0");
    // As a netlink monitor (linux/if_arp.h).
    tun.set_link_type(824);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here).with(["-i", "any"]).to(&path);
    let capture = plan.start();
    let ready = capture.wait_event("ready");
    assert_eq!(names(&ready), ["lo", "one"], "{ready}");
    tun.port.set(&["alias", "again"]);
    // News behind that: what joins has been heard after it.
    let other = node.cable("two");
    capture.wait_event("joined");
    cable.exchange(0..5);
    other.exchange(5..10);
    let finished = capture.stop();
    let stderr = &finished.stderr;
    let left_out = "tun0 is left out: cannot capture on tun0: it carries netlink messages";
    assert_eq!(stderr.matches(left_out).count(), 1, "{stderr}");
    read(&path, &finished.success());
}

#[test]
fn bad_patterns_are_refused() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-bad");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here).with(["-i", "ve["]).to(&path);
    plan.run().failure(1, &["cannot capture on ve["]);
    assert!(!path.exists());
}
