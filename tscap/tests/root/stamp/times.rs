//! Receive times: within their bound, and earlier than the kernel's own.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tscap_testkit::root::{alone, root};
use tscap_testkit::wait;
use tscap_time::tsc;

use super::{bed, count, stamping, summary};

/// Datagrams of a run.
const MANY: usize = 300;

#[test]
fn a_socket_gets_the_stamp_of_each_clock() {
    let Some(_lock) = alone("the TSC's events of a CPU pause for those of others") else {
        return;
    };
    let (bench, udp) = bed("stamp-clocks");
    let clocks = ["ktime", "tai", "tsc"].into_iter();
    for clock in clocks.filter(|clock| *clock != "tsc" || tsc::check().is_ok()) {
        let running = stamping(&bench, &["--clock", clock]);
        let exchanges = udp.exchanges(MANY);
        let finished = running.stop();
        let said = summary(&finished);
        let bound = count(&said, "host_bound_ns");
        exchanges.iter().for_each(|it| it.is_within(bound));
        // The stack may hold one back until another CPU has time for it.
        let (stamped, apart) = (count(&said, "stamped"), count(&said, "apart"));
        assert_eq!(stamped + apart, MANY as u64, "{clock}: {said}");
        assert!(stamped > MANY as u64 * 9 / 10, "{clock}: {said}");
        assert!(bound < 1_000_000, "{clock}: {said}");
        assert_eq!(finished.events("ready")[0]["clock"], clock);
    }
}

/// By the account, which compares both stamps of each packet.
#[test]
fn the_stamp_is_earlier_than_the_kernels_own() {
    let Some(_lock) = root() else { return };
    let (bench, udp) = bed("stamp-turns");
    let running = stamping(&bench, &["--clock", "ktime"]);
    udp.exchanges(MANY);
    let said = summary(&running.stop());
    // Of the same packets: exactly what it is for.
    assert!(count(&said, "mean_earlier_ns") > 0, "{said}");
}

/// Nobody keeps the conversion up to date: the kernel's stamp stays, and each is counted.
#[test]
fn a_stale_conversion_is_never_used() {
    let Some(_lock) = root() else { return };
    let (bench, udp) = bed("stamp-stale");
    let running = stamping(&bench, &["--clock", "ktime"]);
    udp.exchanges(MANY);
    running.freeze();
    let frozen = Instant::now();
    wait::until(
        "the conversion to be stale",
        Duration::from_secs(30),
        || (frozen.elapsed() > Duration::from_millis(1_200)).then_some(()),
    );
    // The kernel's own are exact.
    udp.exchanges(MANY).iter().for_each(|it| it.is_within(0));
    running.thaw();
    running.wait_event_with("progress", |it| it["stale"] == MANY);
    let fresh = udp.exchanges(MANY);
    let said = summary(&running.stop());
    let bound = count(&said, "host_bound_ns");
    fresh.iter().for_each(|it| it.is_within(bound));
    assert_eq!(count(&said, "stale"), MANY as u64, "{said}");
    assert!(count(&said, "stamped") > MANY as u64, "{said}");
}

/// Without a program that asks for times tscap changes nothing.
#[test]
fn packets_that_nobody_wants_stamped_are_left_alone() {
    let Some(_lock) = alone("no other program may ask for receive times") else {
        return;
    };
    let (bench, udp) = bed("stamp-unasked");
    drop(udp);
    let running = stamping(&bench, &["--clock", "ktime"]);
    let sender = bench.tx.netns.enter(|| UdpSocket::bind("10.9.0.1:0"));
    let sender = sender.expect("a socket");
    // The kernel goes on to stamp for some moments: until packets are without a stamp. Nobody
    // is at the port.
    let is_enough = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(60);
            while !is_enough.load(Ordering::Relaxed) && Instant::now() < end {
                let _ = sender.send_to(b"tscap", "10.9.0.2:9");
            }
        });
        running.wait_event_with("progress", |it| it["unasked"].as_u64() > Some(MANY as u64));
        is_enough.store(true, Ordering::Relaxed);
    });
    let said = summary(&running.stop());
    assert!(count(&said, "unasked") > MANY as u64, "{said}");
}
