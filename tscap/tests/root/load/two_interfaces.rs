//! Two interfaces at full rate at the same time, each on a CPU of its own.

use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture;
use tscap_testkit::files::SmallDisk;
use tscap_testkit::root::{alone_with, two_cpus};

use super::FILLS;
use super::account::{self, PROGRAMS};
use super::flood::Flood;

#[test]
fn two_interfaces_at_full_rate_are_counted_apart_and_merged_in_order() {
    let Some(_lock) = alone_with(FILLS, &PROGRAMS) else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("two-full");
    let (tx1, rx1) = bench.add_pair(1);
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out.pcapng");
    let capture = capture(&bench.rx.netns)
        .on(&bench.rx)
        .on(&rx1)
        .to(&path)
        .ready();
    let floods = [(&bench.tx, first, 64), (&tx1, second, 300)];
    let floods = floods.map(|(port, cpu, size)| Flood::begin(port, size, cpu, FLOOD));
    let sent = floods.map(Flood::end);
    let summary = capture.stop().success();
    account::only_rings_were_full(&summary);
    account::of_all(&[&path], &summary, &sent);
    for interface in &summary.interfaces {
        assert!(interface.written > 10_000, "{interface:?}");
    }
    assert_eq!((bench.rx.xdp_program(), rx1.xdp_program()), (None, None));
}

/// How long frames come.
const FLOOD: Duration = Duration::from_secs(1);
