//! Bridge, router, NAT and firewall: each frame is matched, and took no longer than the far
//! end saw.

use tscap_testkit::between::Between;
use tscap_testkit::files;
use tscap_testkit::root::alone_with;

use super::{MEASURES, PROGRAMS, first, is_within, measure, observed, send, watch};

const FRAMES: u64 = 3_000;
const PACE: [&str; 2] = ["--rate", "5k"];
/// Of the far end's stamps, and of the reading of CLOCK_TAI in the frames, ns.
const CLOCKS_NS: i64 = 5_000;

/// How the packets of a device can be matched.
fn passes(between: &Between, matchers: &[&str]) {
    for matcher in matchers {
        let folder = files::folder();
        let path = folder.path().join("far.pcapng");
        let far = watch(between, &path);
        let (measurement, ()) = measure(between, &["--match", matcher], || {
            send(between, &PACE, FRAMES);
        });
        far.stop().success();
        let [passage] = &measurement.passages[..] else {
            panic!("{measurement:?}");
        };
        for exit in &passage.exits {
            let of = exit.account;
            let ends = (of.matched, of.entered, of.left);
            assert_eq!(ends, (FRAMES, FRAMES, FRAMES), "{matcher}: {exit:?}");
            assert_eq!(of.matched, of.entered, "{matcher}: {of:?}");
        }
        let (exit, delays) = first(&measurement);
        assert_eq!(exit.point, "tap");
        assert!(delays.summary.min >= 0, "{delays:?}");
        is_within(delays, &observed(&path), CLOCKS_NS);
    }
}

#[test]
fn a_bridge_passes_every_frame() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    passes(&Between::bridge("delay-bridge"), &["gen", "bridge", "auto"]);
}

#[test]
fn a_router_passes_every_packet() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    passes(&Between::router("delay-router"), &["gen", "route", "auto"]);
}

#[test]
fn nat_passes_every_packet() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    passes(&Between::nat("delay-nat"), &["gen", "nat"]);
}

#[test]
fn a_firewall_passes_every_packet_whatever_its_rules() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    for rules in [0, 10, 100, 1_000] {
        let between = Between::firewall(&format!("delay-fw{rules}"), rules);
        passes(&between, &["route"]);
    }
}

/// Each rule takes its time: a thousand are slower than none.
#[test]
fn rules_take_time() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let median = |rules| {
        let between = Between::firewall(&format!("delay-slow{rules}"), rules);
        let (measurement, ()) = measure(&between, &["--match", "route"], || {
            send(&between, &PACE, FRAMES);
        });
        first(&measurement).1.summary.p50.expect("enough packets")
    };
    let (none, thousand) = (median(0), median(1_000));
    assert!(thousand > none + 1_000, "{none} and {thousand} ns");
}

/// A router does not let through what a router changes, if it is matched as a bridge's.
#[test]
fn what_can_not_be_matched_has_its_names() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-unmatched");
    let (measurement, ()) = measure(&between, &["--match", "bridge"], || {
        send(&between, &PACE, FRAMES);
    });
    for exit in &measurement.passages[0].exits {
        let of = exit.account;
        assert_eq!((of.matched, of.entered, of.left), (0, FRAMES, FRAMES));
        assert_eq!(of.lost_inside + of.pending, FRAMES, "{of:?}");
        assert_eq!(of.originated + of.early, FRAMES, "{of:?}");
        assert!(exit.delays.is_none());
    }
}
