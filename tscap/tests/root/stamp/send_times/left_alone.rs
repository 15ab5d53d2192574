//! Packets that are sent as they are.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;
use tscap_protocol::{Mode, PORT, TimeFormat};
use tscap_testkit::between::Between;
use tscap_testkit::capture::{LIMIT, stamp};
use tscap_testkit::root::root;
use tscap_testkit::test_packets::reply;
use tscap_testkit::wait;

use super::packets::{Family, Sockets, checksums_are_right};
use super::{bed, outcomes, sending};
use crate::stamp::{stamping, summary};

/// Packets of a run.
const MANY: usize = 100;

/// Octet by octet.
#[track_caller]
fn arrives_as_it_was_sent(sockets: &Sockets, payload: &[u8]) {
    sockets.send(payload);
    assert_eq!(sockets.arrived(), payload);
}

/// A hash is over the time.
#[test]
fn authenticated_packets_are_left_alone() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-signed");
    let running = sending(&bench);
    let lengths = [112, 113, 200, 1_400];
    for family in Family::ALL {
        let sockets = Sockets::new(&bench, family);
        for octets in lengths {
            let mut packet = reply(1, octets, TimeFormat::Ntp);
            // The time is behind twelve octets of zero, as in each authenticated packet.
            let unauthenticated = packet[..Mode::Unauthenticated.base()].to_vec();
            packet[4..16].fill(0);
            packet[16..26].copy_from_slice(&unauthenticated[4..14]);
            arrives_as_it_was_sent(&sockets, &packet);
        }
        sockets.exchange(1);
    }
    let signed = ("authenticated", 2 * lengths.len());
    outcomes(&running.stop(), 2, &[signed]);
}

#[test]
fn fragments_are_left_alone() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-fragments");
    let running = sending(&bench);
    for family in Family::ALL {
        let sockets = Sockets::new(&bench, family);
        arrives_as_it_was_sent(&sockets, &reply(1, 4_000, TimeFormat::Ntp));
    }
    checksums_are_right(&bench.tx.netns);
    let said = outcomes(&running.stop(), 0, &[("fragment", 2)]);
    // Both later fragments of each.
    assert!(super::count(&said, "other") >= 4, "{said}");
}

/// One buffer that becomes several packets behind tcx.
#[test]
fn aggregates_are_left_alone() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-aggregates");
    let running = sending(&bench);
    for family in Family::ALL {
        let sockets = Sockets::new(&bench, family);
        setsockopt(&sockets.sender, UdpGsoSegment, &100).expect("segments");
        let parts = [1, 2, 3].map(|sequence| reply(sequence, 100, TimeFormat::Ntp));
        sockets.send(&parts.concat());
        for part in parts {
            assert_eq!(sockets.arrived(), part);
        }
        // A single one is an ordinary packet.
        sockets.exchange(1);
    }
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), 2, &[("aggregate", 2)]);
}

#[test]
fn short_packets_and_those_of_other_ports_are_left_alone() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-others");
    let running = sending(&bench);
    for family in Family::ALL {
        let sockets = Sockets::new(&bench, family);
        arrives_as_it_was_sent(&sockets, &reply(1, 13, TimeFormat::Ntp));
        arrives_as_it_was_sent(&sockets, &[]);
        let (from, to) = (
            (family.ours(), PORT + 1).into(),
            (family.theirs(), 0).into(),
        );
        let others = Sockets::between(&bench, from, to);
        for sequence in 0..MANY as u32 {
            arrives_as_it_was_sent(&others, &reply(sequence, 44, TimeFormat::Ntp));
        }
    }
    let said = outcomes(&running.stop(), 0, &[("short", 4)]);
    assert!(super::count(&said, "other") >= 2 * MANY as u64, "{said}");
}

/// The time would be that of the machine in between.
#[test]
fn forwarded_packets_are_left_alone() {
    let Some(_lock) = root() else { return };
    let between = Between::router("send-router");
    let running = stamp(between.device()).on(&between.out);
    let running = running.with(["--send-times", "862"]).start();
    running.wait_event("ready");
    let bind = |address: &str| UdpSocket::bind(address).expect("a socket");
    let receiver = between.far.netns.enter(|| bind("10.10.0.1:0"));
    receiver
        .set_read_timeout(Some(LIMIT))
        .expect("a time limit");
    let sender = between.bench.tx.netns.enter(|| bind("10.9.0.1:862"));
    let there = receiver.local_addr().expect("an address");
    sender.connect(there).expect("connect");
    let sockets = Sockets { sender, receiver };
    for sequence in 0..MANY as u32 {
        arrives_as_it_was_sent(&sockets, &reply(sequence, 44, TimeFormat::Ntp));
    }
    outcomes(&running.stop(), 0, &[("forwarded", MANY)]);
}

/// Nobody keeps the conversion up to date: the program's own time stays.
#[test]
fn a_stale_conversion_is_never_used() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-stale");
    let running = sending(&bench);
    let sockets = Sockets::new(&bench, Family::V4);
    running.freeze();
    let frozen = Instant::now();
    wait::until("the conversion to be stale", LIMIT, || {
        (frozen.elapsed() > Duration::from_millis(1_200)).then_some(())
    });
    for sequence in 0..MANY as u32 {
        arrives_as_it_was_sent(&sockets, &reply(sequence, 44, TimeFormat::Ntp));
    }
    running.thaw();
    running.wait_event_with("progress", |it| it["send_times"]["stale"] == MANY);
    sockets.exchange(MANY);
    outcomes(&running.stop(), MANY, &[("stale", MANY)]);
}

#[test]
fn without_the_option_no_packet_is_touched() {
    let Some(_lock) = root() else { return };
    let bench = bed("send-without");
    let running = stamping(&bench, &["--clock", "ktime"]);
    let sockets = Sockets::new(&bench, Family::V4);
    for sequence in 0..MANY as u32 {
        arrives_as_it_was_sent(&sockets, &reply(sequence, 44, TimeFormat::Ntp));
    }
    let said = summary(&running.stop());
    assert_eq!(said.get("send_times"), None, "{said}");
}
