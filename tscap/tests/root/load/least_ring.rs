//! The least ring that there is.

use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files::SmallDisk;
use tscap_testkit::root::{alone_with, two_cpus};

use super::FILLS;
use super::account::{self, PROGRAMS};
use super::flood::Flood;

#[test]
fn the_least_ring_under_full_load_loses_only_what_it_counts() {
    let (Some(_lock), Some((first, second))) = (alone_with(FILLS, &PROGRAMS), two_cpus()) else {
        return;
    };
    let bench = Bench::new("least");
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out.pcapng");
    for size in [64, 1514] {
        let capture = capture_on(&bench.rx, &path)
            .with(["--ring-size", "128K"])
            .with(["--converter-cpu", &second.to_string()])
            .ready();
        let sent = Flood::begin(&bench.tx, size, first, Duration::from_secs(1)).end();
        let summary = capture.stop().success();
        account::only_rings_were_full(&summary);
        account::of_all(&[&path], &summary, &[sent]);
        // Many rings full went through.
        assert!(
            summary.bytes_written > 100 * (128 << 10),
            "{size}: {summary:?}"
        );
    }
}
