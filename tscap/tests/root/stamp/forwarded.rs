//! Packets that go on to another interface: a receive time is no time to be sent at.

use std::time::Duration;

use tscap_testkit::between::Between;
use tscap_testkit::capture::{LIMIT, stamp};
use tscap_testkit::command::run;
use tscap_testkit::root::root_with;
use tscap_testkit::send_times::SendTimes;
use tscap_testkit::stamped_udp::StampedUdp;

use super::{count, summary};

/// Datagrams of a run.
const MANY: usize = 200;
/// The fq discipline holds back what has a later time, or drops it (`horizon`, 10 s).
const LONGEST: Duration = Duration::from_secs(1);

/// Exchanges datagrams through the device, where tscap stamps and fq sends, if this kernel has
/// that.
fn through(between: &Between, to: &str) {
    let (device, out) = (between.device(), &between.out.name);
    let mut tc = device.command("tc");
    let fq = run(
        tc.args(["qdisc", "replace", "dev", out, "root", "fq"]),
        LIMIT,
    );
    let is_unknown = fq.stderr.contains("qdisc kind is unknown");
    assert!(fq.status.success() || is_unknown, "{}", fq.stderr);
    let send_times = SendTimes::of(&between.out);
    let rx = &between.bench.rx;
    let running = stamp(device).on(rx).with(["--clock", "ktime"]).start();
    running.wait_event("ready");
    let udp = StampedUdp::new(&between.bench.tx.netns, &between.far.netns, to);
    for exchange in udp.exchanges(MANY) {
        exchange.is_within(0);
        let took = exchange.received.0 - exchange.sent.0;
        assert!(u128::from(took) < LONGEST.as_nanos(), "{exchange:?}");
    }
    let [without, with] = send_times.counts();
    assert!(without >= MANY as u64 && with == 0, "{without}, {with}");
    let said = summary(&running.stop());
    assert!(count(&said, "stamped") >= MANY as u64 / 2, "{said}");
}

#[test]
fn a_router_delays_nothing() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tc"]) else {
        return;
    };
    through(&Between::router("stamp-router"), "10.10.0.1");
}

#[test]
fn a_bridge_delays_nothing() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tc"]) else {
        return;
    };
    let between = Between::bridge("stamp-bridge");
    let (tx, far) = (&between.bench.tx, &between.far);
    for (port, address) in [(tx, "10.9.0.1/24"), (far, "10.9.0.2/24")] {
        port.netns
            .ip(&["address", "add", address, "dev", &port.name]);
    }
    tx.knows("10.9.0.2", far);
    far.knows("10.9.0.1", tx);
    through(&between, "10.9.0.2");
}
